"""An object store on this machine: `moto`'s S3, which counts its requests and delays its answers."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

BUCKET = "lake"
_HADOOP, _SDK = "3.5.0", "2.35.4"  # of the Hadoop in Spark 4.2
_PARTS = ("s3", "s3-transfer-manager", "sts")  # instead of the SDK's bundle of 640 MB


class ObjectStore:
    """A server of one bucket that lives as long as the process; `delay` is the seconds before each answer."""

    def __init__(self, delay: float = 0.0) -> None:
        import boto3
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.delay, self.requests = delay, Counter[str]()
        self._app = DomainDispatcherApplication(create_backend_app)
        handler = type("Handler", (WSGIRequestHandler,), {"protocol_version": "HTTP/1.1"})  # keeps connections open
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
        self._client = boto3.client("s3", endpoint_url=self.url, **keys)
        self._client.create_bucket(Bucket=BUCKET)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def upload(self, folder: Path, to: str) -> None:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            self._client.put_object(Bucket=BUCKET, Key=f"{to}/{file.relative_to(folder)}", Body=file.read_bytes())

    def counted(self) -> Counter[str]:
        """Return the number of requests since the last call, by kind."""
        counted, self.requests = self.requests, Counter()
        return counted

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        self.requests[_kind(environ)] += 1
        time.sleep(self.delay)
        answer: Iterable[bytes] = self._app(environ, start)
        return answer


def _kind(environ: dict[str, Any]) -> str:
    method, is_bucket = environ["REQUEST_METHOD"], environ["PATH_INFO"].strip("/").count("/") == 0
    return "LIST" if method == "GET" and is_bucket else "DELETE" if method == "POST" and is_bucket else str(method)


def settings(url: str) -> dict[str, str]:
    """Return the settings of a session that reads `s3a://lake`."""
    parts = (f"software.amazon.awssdk:{part}:{_SDK}" for part in _PARTS)
    s3a = {
        "endpoint": url,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": "any",
        "secret.key": "any",
    }
    return {
        "spark.jars.packages": ",".join((f"org.apache.hadoop:hadoop-aws:{_HADOOP}", *parts)),
        "spark.jars.excludes": "software.amazon.awssdk:bundle,"
        "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime",
        **{f"spark.hadoop.fs.s3a.{key}": value for key, value in s3a.items()},
    }

package hedgerow;

import java.io.IOException;
import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.api.java.UDF4;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.Seq;

/** Reads parts of files in tasks, where Python has none of Spark's file systems. */
final class FileParts implements Serializable {
    private static final long serialVersionUID = 1;
    private static final int FIRST_READ = 1 << 16; // at once from the end of a file; a longer footer takes a second read
    private static final int END = 8; // bytes after the footer: its length, and PAR1

    private final SerializableConfiguration settings;

    FileParts(Configuration settings) {
        this.settings = new SerializableConfiguration(settings);
    }

    /** Returns the end of a Parquet file of this path and length, with the whole footer. */
    UDF2<String, Long, byte[]> footers() {
        return this::footer;
    }

    /** Returns the parts of a file of this path and length that begin at these places and have these lengths. */
    UDF4<String, Long, Seq<Object>, Seq<Object>, byte[][]> parts() {
        return this::parts;
    }

    private byte[] footer(String file, Long size) throws IOException {
        try (FSDataInputStream stream = open(file, size)) {
            byte[] end = end(stream, size, FIRST_READ);
            long length = end.length < END ? 0 : lengthIn(end);
            // Not every file is Parquet: then its end may name any length.
            return length <= end.length || length > size || length > Integer.MAX_VALUE ? end : end(stream, size, length);
        }
    }

    private static long lengthIn(byte[] end) {
        long length = 0;
        for (int i = 5; i <= END; i++) {
            length = length << 8 | end[end.length - i] & 0xff;
        }
        return length + END;
    }

    private static byte[] end(FSDataInputStream stream, long size, long length) throws IOException {
        byte[] end = new byte[(int) Math.min(size, length)];
        stream.readFully(size - end.length, end);
        return end;
    }

    private byte[][] parts(String file, Long size, Seq<Object> starts, Seq<Object> lengths) throws IOException {
        byte[][] parts = new byte[starts.size()][];
        if (parts.length > 0) {
            try (FSDataInputStream stream = open(file, size)) {
                for (int i = 0; i < parts.length; i++) {
                    parts[i] = new byte[Math.toIntExact((Long) lengths.apply(i))];
                    stream.readFully((Long) starts.apply(i), parts[i]);
                }
            }
        }
        return parts;
    }

    private FSDataInputStream open(String file, long size) throws IOException {
        Path path = new Path(file);
        try {
            return path.getFileSystem(settings.value()).openFile(path)
                .opt("fs.option.openfile.length", Long.toString(size)) // a known length saves a request to a store
                .build().get();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IOException(error);
        } catch (java.util.concurrent.ExecutionException error) {
            throw new IOException(error.getCause());
        }
    }
}

package hedgerow;

import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.Py4JServer;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;

/**
 * A Python process that answers the rules of this JVM. It is started when a query first needs it, and again after it
 * has ended, with growing pauses. No query waits for its answers longer than `spark.hedgerow.timeout` in all; only
 * until the first answer of the first process queries wait until `spark.hedgerow.startTimeout` after its start.
 *
 * <p>Requests go over its standard input and answers come over its standard output, so it needs no open port. It reads
 * tables through this JVM, by Spark's own gateway for Python: on the loopback address, by a secret in its environment.
 */
final class PythonProcess implements Python {
    private static final long FIRST_PAUSE = TimeUnit.SECONDS.toNanos(1);
    private static final long STEADY = TimeUnit.MINUTES.toNanos(1); // after so long, the pauses begin anew
    private static final long HUNG = TimeUnit.MINUTES.toNanos(5); // a process that is silent so long is ended
    private static PythonProcess current;

    private final SparkContext context;
    private final long timeout; // nanoseconds
    private final long startTimeout;
    private final long longestPause;
    private final ThreadLocal<Long> began = ThreadLocal.withInitial(System::nanoTime); // when the query did
    private Py4JServer server;
    private Conversation conversation;
    private volatile boolean isFirst = true; // until it has answered or ended
    private volatile long startedAt;
    private long notBefore = System.nanoTime();
    private long pause = FIRST_PAUSE;

    private PythonProcess(SparkContext context) {
        this.context = context;
        this.timeout = nanos("spark.hedgerow.timeout", "1s");
        this.startTimeout = nanos("spark.hedgerow.startTimeout", "10s");
        this.longestPause = nanos("spark.hedgerow.longestPause", "5min");
        context.addSparkListener(new SparkListener() {
            @Override
            public void onApplicationEnd(SparkListenerApplicationEnd end) {
                close();
            }
        });
    }

    /** Returns the process of a JVM, which runs one Spark application at a time. */
    static synchronized PythonProcess of(SparkContext context) {
        if (current == null || current.context != context) {
            current = new PythonProcess(context);
        }
        return current;
    }

    private long nanos(String setting, String fallback) {
        return TimeUnit.MILLISECONDS.toNanos(context.conf().getTimeAsMs(setting, fallback));
    }

    @Override
    public void begin() {
        began.set(System.nanoTime());
    }

    @Override
    public Allowlist allowed() {
        return conversation().allowed(isFirst ? deadline() : System.nanoTime()); // no query waits for another start
    }

    @Override
    public String answer(String request) {
        allowed();
        Conversation now = conversation();
        boolean isSilent = !isFirst && now.isSilentFor(timeout);
        String answer = now.answer(request, isSilent ? System.nanoTime() : deadline());
        isFirst = false;
        return answer;
    }

    /** Returns the time until when the query of this thread may wait. */
    private long deadline() {
        long end = began.get() + timeout;
        long start = startedAt + startTimeout;
        return isFirst && start - end > 0 ? start : end;
    }

    private synchronized Conversation conversation() {
        if (conversation != null && conversation.isOpen() && !conversation.isSilentFor(HUNG)) {
            return conversation;
        }
        long now = System.nanoTime();
        if (conversation != null) {
            String ended = conversation.end();
            isFirst = false;
            pause = now - startedAt > STEADY ? FIRST_PAUSE : Math.min(2 * pause, longestPause);
            notBefore = now + pause;
            conversation = null;
            PruningRule.LOG.warn("Hedgerow's Python has ended (" + ended + "): queries open all files for at least "
                + TimeUnit.NANOSECONDS.toSeconds(pause) + " s");
        }
        if (now - notBefore < 0) {
            throw new IllegalStateException("Hedgerow's Python has ended, and is started again in a while");
        }
        startedAt = now;
        conversation = start();
        return conversation;
    }

    private Conversation start() {
        SparkConf conf = context.conf();
        String fallback = System.getenv().getOrDefault("PYSPARK_PYTHON", "python3");
        String python = conf.get("spark.hedgerow.python", conf.get("spark.pyspark.python", fallback));
        ProcessBuilder builder = new ProcessBuilder(python, "-m", "hedgerow.tables.serve");
        builder.environment().put("PYSPARK_GATEWAY_PORT", Integer.toString(server(conf).getListeningPort()));
        builder.environment().put("PYSPARK_GATEWAY_SECRET", server.secret());
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        try {
            return new Conversation(builder.start());
        } catch (IOException error) {
            notBefore = System.nanoTime() + longestPause;
            throw new IllegalStateException("Hedgerow's Python cannot be started: " + error.getMessage()
                + "; name another by spark.hedgerow.python");
        }
    }

    /** Returns Spark's gateway for Python. Its threads are daemons, so that the JVM can end. */
    private Py4JServer server(SparkConf conf) {
        if (server == null) {
            server = new Py4JServer(conf);
            Thread starter = new Thread(server::start, "hedgerow-gateway");
            starter.setDaemon(true); // its threads inherit this
            starter.start();
            try {
                starter.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted");
            }
        }
        return server;
    }

    private synchronized void close() {
        notBefore = System.nanoTime() + Long.MAX_VALUE / 2; // never
        if (conversation != null) {
            conversation.end();
            conversation = null;
        }
        if (server != null) {
            server.shutdown();
        }
    }
}

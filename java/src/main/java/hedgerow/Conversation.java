package hedgerow;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Requests to one Python process and its answers, on any number of threads: lines of a number and JSON. Line 0 of
 * Python is its first message.
 */
final class Conversation {
    private static final int MAX_LATE = 1000; // requests
    private static final String ENDED = "Hedgerow's Python has ended";

    private final Process process;
    private final ExecutorService writer = Executors.newSingleThreadExecutor(task -> daemon(task, "hedgerow-requests"));
    private final BufferedWriter requests;
    private final AtomicLong numbers = new AtomicLong();
    private final CompletableFuture<String> first = new CompletableFuture<>();
    private final Map<Long, CompletableFuture<String>> waiting = new ConcurrentHashMap<>();
    // Answers that came, or will come, too late for the query that asked. Another query may take them.
    private final Map<String, CompletableFuture<String>> late = new ConcurrentHashMap<>();
    private volatile long silentSince = System.nanoTime(); // if requests wait
    private volatile boolean isOpen = true;
    private volatile Allowlist allowed;

    Conversation(Process process) {
        this.process = process;
        this.requests = new BufferedWriter(
            new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
        waiting.put(0L, first);
        daemon(this::read, "hedgerow-answers").start();
    }

    private static Thread daemon(Runnable task, String name) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }

    boolean isOpen() {
        return isOpen;
    }

    /** Returns whether requests wait, and no answer has come for so long. */
    boolean isSilentFor(long nanos) {
        return System.nanoTime() - silentSince > nanos && !waiting.isEmpty();
    }

    /** Returns the lists of the first message. */
    Allowlist allowed(long deadline) {
        if (allowed == null) {
            String message = await(first, deadline, "Hedgerow's Python is starting");
            try {
                allowed = new Allowlist(Wire.readLists(message));
            } catch (IOException error) {
                throw new IllegalStateException("the first message of Python cannot be read");
            }
        }
        return allowed;
    }

    String answer(String request, long deadline) {
        if (late.size() > MAX_LATE) {
            throw new IllegalStateException("Python is behind by " + MAX_LATE + " requests");
        }
        CompletableFuture<String> answer = late.computeIfAbsent(request, this::send);
        String text = await(answer, deadline, "Hedgerow's Python has not answered in time");
        late.remove(request, answer);
        return text;
    }

    private CompletableFuture<String> send(String request) {
        CompletableFuture<String> answer = new CompletableFuture<>();
        long number = numbers.incrementAndGet();
        if (waiting.isEmpty()) {
            silentSince = System.nanoTime();
        }
        waiting.put(number, answer);
        try {
            writer.execute(() -> write(number + " " + request + "\n")); // a full pipe must not hold up the query
        } catch (RejectedExecutionException error) {
            answer.completeExceptionally(new IllegalStateException(ENDED));
        }
        if (!isOpen) {
            answer.completeExceptionally(new IllegalStateException(ENDED));
        }
        return answer;
    }

    private void write(String line) {
        try {
            requests.write(line);
            requests.flush();
        } catch (IOException error) {
            process.destroy(); // then the reader comes to its end
        }
    }

    private String await(CompletableFuture<String> answer, long deadline, String problem) {
        try {
            return answer.get(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (TimeoutException error) {
            throw new IllegalStateException(problem);
        } catch (ExecutionException error) {
            throw new IllegalStateException(error.getCause().getMessage());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted");
        }
    }

    private void read() {
        try (BufferedReader answers = new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = answers.readLine(); line != null; line = answers.readLine()) {
                silentSince = System.nanoTime();
                int space = line.indexOf(' ');
                CompletableFuture<String> answer = waiting.remove(Long.parseLong(line.substring(0, space)));
                if (answer != null) {
                    answer.complete(line.substring(space + 1));
                }
            }
        } catch (IOException | RuntimeException error) {
            PruningRule.LOG.warn("Hedgerow's Python cannot be understood: " + error);
        } finally {
            isOpen = false; // before the rest is completed, so that no request is forgotten
            Exception ended = new IllegalStateException(ENDED);
            waiting.values().forEach(answer -> answer.completeExceptionally(ended));
            late.clear();
            writer.shutdown();
            process.destroy();
        }
    }

    /** Ends the process; returns how it has ended. */
    String end() {
        process.destroyForcibly(); // it may hang
        try {
            return process.waitFor(1, TimeUnit.SECONDS) ? "exit code " + process.exitValue() : "it was ended";
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return "interrupted";
        }
    }
}

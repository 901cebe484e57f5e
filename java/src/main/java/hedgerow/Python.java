package hedgerow;

import com.fasterxml.jackson.core.JsonProcessingException;

/** The Python that answers a rule: the one that has attached the session, or a process of this JVM's own. */
interface Python {
    /** Says that a query begins on this thread: its requests together may only take so long. */
    default void begin() {}

    /** Returns the lists of its first message; an exception with the reason if it does not run. */
    Allowlist allowed();

    /** Returns the JSON that answers a request; an exception with the reason if there is no answer. */
    String answer(String request);

    default Wire.Answer ask(Wire.Request request) {
        try {
            return Wire.readAnswer(answer(Wire.write(request)));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException("Python's answer cannot be read: " + error.getOriginalMessage());
        }
    }
}

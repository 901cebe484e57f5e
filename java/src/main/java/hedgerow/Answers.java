package hedgerow;

import com.fasterxml.jackson.core.JsonProcessingException;

/** Asks Python, in records. */
record Answers(Python python) {
    Allowlist allowed() {
        return python.allowed();
    }

    /** Returns Python's answer; a refusal is an exception with the reason. */
    <A extends Wire.Answer> A ask(Wire.Request request, Class<A> expected) {
        Wire.Answer answer = ask(request);
        if (answer instanceof Wire.Refused refused) {
            throw new IllegalStateException(refused.reason());
        }
        return expected.cast(answer);
    }

    Wire.Answer ask(Wire.Request request) {
        try {
            return Wire.readAnswer(python.answer(Wire.write(request)));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException("Python's answer cannot be read: " + error.getOriginalMessage());
        }
    }
}

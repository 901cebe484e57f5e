package hedgerow;

import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;
import scala.collection.immutable.Seq;

/**
 * The functions that users declared stable: equal arguments give equal values. A declaration is about a function as it
 * is registered; one that is registered under the same name later is not declared.
 */
final class StableFunctions {
    /** Before a function's name: its version stands among a session's settings. */
    static final String PREFIX = "hedgerow.stable.";
    private static final int MAX_ARGUMENTS = 22; // of a function in Java or Scala
    private static final List<Declared> DECLARED = new CopyOnWriteArrayList<>();

    private StableFunctions() {}

    /**
     * One declaration.
     *
     * @param returned the type of the function's values
     * @param builder the object in the session's registry that makes calls of the function
     */
    record Declared(FunctionIdentifier id, String version, String returned, WeakReference<Object> builder) {
        boolean isIn(SparkSession session) {
            Object now = builderOf(session.sessionState().functionRegistry(), id);
            return now != null && now == builder.get();
        }
    }

    /** Declares a function that was registered in the session; returns false if there is none of that name. */
    static boolean declare(SparkSession session, String name, String version) {
        FunctionIdentifier id = idOf(session.sessionState().functionRegistry(), name.toLowerCase(Locale.ROOT));
        if (id == null) {
            return false;
        }
        DECLARED.removeIf(old -> old.builder.get() == null || old.id.equals(id) && old.isIn(session));
        var builder = builderOf(session.sessionState().functionRegistry(), id);
        DECLARED.add(new Declared(id, version, returnedBy(builder), new WeakReference<>(builder)));
        return true;
    }

    /** Returns the session's declared functions, by name in lower case. */
    static Map<String, Declared> of(SparkSession session) {
        Map<String, Declared> found = new TreeMap<>();
        for (Declared declared : DECLARED) {
            if (declared.isIn(session)) {
                found.put(declared.id.funcName(), declared);
            }
        }
        return found;
    }

    /** Returns the temporary function of a name that is none of Spark's own; null if there is none. */
    private static FunctionIdentifier idOf(FunctionRegistryBase<Expression> registry, String name) {
        List<FunctionIdentifier> own = Scala.list(FunctionRegistry$.MODULE$.builtin().listFunction());
        if (own.stream().anyMatch(id -> id.funcName().equals(name))) {
            return null;
        }
        return Scala.list(registry.listFunction()).stream().filter(id -> id.funcName().equals(name)
            && (id.database().isEmpty() || id.database().get().equals("session"))).findFirst().orElse(null);
    }

    /** Returns the type of a call, with as many arguments as the function takes. */
    private static String returnedBy(Function1<Seq<Expression>, Expression> builder) {
        for (int count = 0; count <= MAX_ARGUMENTS; count++) {
            try {
                return Scala.typeOf(builder.apply(Scala.seq(Collections.nCopies(count, Literal.TrueLiteral()))));
            } catch (Exception wrongCount) {
                continue;
            }
        }
        return "void";
    }

    private static Function1<Seq<Expression>, Expression> builderOf(
            FunctionRegistryBase<Expression> registry, FunctionIdentifier id) {
        var builder = registry.lookupFunctionBuilder(id);
        return builder.isDefined() ? builder.get() : null;
    }
}

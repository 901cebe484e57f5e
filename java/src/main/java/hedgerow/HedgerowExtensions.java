package hedgerow;

import java.net.URL;
import java.util.function.Consumer;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.util.ChildFirstURLClassLoader;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * The value of `spark.sql.extensions` that makes every session of a JVM skip files.
 *
 * <p>Delta's classes may lie in a class loader below the one of this jar, for `--packages` puts them there. All classes
 * of the jar but this one are then loaded once more, over that loader.
 */
public final class HedgerowExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    private static ClassLoader loader;

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        try {
            @SuppressWarnings("unchecked") // it is ours
            var sessions = (Consumer<SparkSessionExtensions>) load(EverySession.class.getName())
                .getDeclaredConstructor().newInstance();
            sessions.accept(extensions);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
        return BoxedUnit.UNIT;
    }

    /** Returns a class of the jar; one that sees Delta's, if any class of Spark does. Python calls this too. */
    public Class<?> load(String name) throws ClassNotFoundException {
        return loader().loadClass(name);
    }

    private static synchronized ClassLoader loader() {
        if (loader == null) {
            ClassLoader own = HedgerowExtensions.class.getClassLoader();
            ClassLoader ofSpark = Thread.currentThread().getContextClassLoader();
            URL jar = HedgerowExtensions.class.getProtectionDomain().getCodeSource().getLocation();
            boolean isDeltaBelow = ofSpark != null && Delta.isIn(ofSpark) && !Delta.isIn(own);
            loader = isDeltaBelow ? new ChildFirstURLClassLoader(new URL[] {jar}, ofSpark) : own;
        }
        return loader;
    }
}

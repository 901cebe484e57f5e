package hedgerow;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import scala.Option;

/** Tells queries of users from those that Hedgerow, Delta and streams run by themselves. */
final class UserQueries {
    /** The tag of the jobs of Hedgerow's own queries; `OWN_QUERIES` in Python. */
    static final String OWN = "hedgerow";
    private static final List<String> OF_OTHERS =
        List.of("org.apache.spark.sql.delta.", "org.apache.spark.sql.execution.streaming.");

    private UserQueries() {}

    /** Returns whether the query that is planned on this thread is one of Hedgerow's own. */
    static boolean isOwn() {
        Option<SparkSession> session = SparkSession.getActiveSession();
        return session.isDefined() && Scala.set(session.get().sparkContext().getJobTags()).contains(OWN);
    }

    /**
     * Returns whether a query that reads no table of files is a user's. The answer of a command is shown by such a
     * query, and a cached table was read by another one.
     */
    static boolean isUsers(LogicalPlan plan) {
        boolean isFirst = Scala.list(plan.collectLeaves()).stream()
            .noneMatch(leaf -> leaf instanceof CommandResult || leaf instanceof InMemoryRelation);
        return isFirst && StackWalker.getInstance().walk(frames ->
            frames.noneMatch(frame -> OF_OTHERS.stream().anyMatch(frame.getClassName()::startsWith)));
    }
}

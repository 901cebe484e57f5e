package hedgerow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/**
 * Plans scans that skip row groups of files. Spark divides files only where it likes, so each scan that another strategy
 * plans gives way to a `RowGroupScan` with the same list of files.
 */
final class RowGroupScans extends SparkStrategy {
    private static final RowGroupScans ONE = new RowGroupScans();

    private RowGroupScans() {}

    /** Lets a session plan such scans. */
    static void planIn(SparkSession session) {
        ExperimentalMethods methods = classic(session).experimental();
        synchronized (ONE) {
            List<SparkStrategy> strategies = new ArrayList<>(Scala.list(methods.extraStrategies()));
            if (!strategies.contains(ONE)) {
                strategies.add(0, ONE);
                methods.extraStrategies_$eq(Scala.seq(strategies));
            }
        }
    }

    private static org.apache.spark.sql.classic.SparkSession classic(SparkSession session) {
        return (org.apache.spark.sql.classic.SparkSession) session;
    }

    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
        if (!skipsGroups(plan)) {
            return Scala.none();
        }
        try {
            for (SparkStrategy other : Scala.list(classic(SparkSession.active()).sessionState().planner().strategies())) {
                List<SparkPlan> plans = other == this ? List.of() : Scala.list(other.apply(plan));
                if (!plans.isEmpty()) {
                    SparkPlan planned = plans.get(0).transform(Scala.rewrite(RowGroupScans::skipping));
                    return Scala.seq(List.of(planned));
                }
            }
        } catch (LinkageError error) { // another release of Spark: it reads the files as a whole
            PruningRule.LOG.info("Hedgerow skips no row groups: " + error);
        }
        return Scala.none();
    }

    /** Returns whether a plan is a scan that skips row groups, below the columns and conditions that are planned with it. */
    private static boolean skipsGroups(LogicalPlan plan) {
        LogicalPlan below = plan;
        while (below instanceof Project || below instanceof Filter) {
            below = Scala.list(below.children()).get(0);
        }
        return below instanceof LogicalRelation relation && relation.relation() instanceof HadoopFsRelation files
            && files.location() instanceof FileLists.Decided list && list.skipsGroups();
    }

    private static SparkPlan skipping(SparkPlan node) {
        return node instanceof FileSourceScanExec scan && !(node instanceof RowGroupScan) && !scan.bucketedScan()
            && scan.relation().location() instanceof FileLists.Decided list && list.skipsGroups()
            ? new RowGroupScan(scan) : node;
    }
}

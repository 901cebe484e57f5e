package hedgerow;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Consumer;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.types.StructType;
import scala.Tuple3;
import scala.collection.immutable.Seq;

/** Attaches every session of a JVM, and gives SQL the function `hedgerow_last_query()`. */
public final class EverySession implements Consumer<SparkSessionExtensions> {
    private static final String LAST_QUERY = "hedgerow_last_query";
    private static final StructType REPORT = StructType.fromDDL("table STRING, files BIGINT, files_opened BIGINT, "
        + "bytes BIGINT, bytes_opened BIGINT, seconds DOUBLE, reason STRING, means STRING, "
        + "files_read BIGINT, bytes_read BIGINT, keys BIGINT, key_seconds DOUBLE");
    private static final Set<SparkSession> ATTACHED =
        Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    @Override
    public void accept(SparkSessionExtensions extensions) {
        extensions.injectOptimizerRule(session -> {
            if (ATTACHED.add(session)) {
                attach(session);
            }
            return new NoRule();
        });
        extensions.injectTableFunction(new Tuple3<>(new FunctionIdentifier(LAST_QUERY),
            new ExpressionInfo(EverySession.class.getName(), LAST_QUERY), arguments -> lastQuery()));
    }

    /**
     * Adds a rule to the last batch of the session's optimizer. An injected rule would see filters before they are
     * pushed down, so the injected one only serves to learn of the session.
     */
    private static void attach(SparkSession session) {
        PruningRule rule = new PruningRule(PythonProcess.of(session.sparkContext()));
        rule.attached(true);
        ExperimentalMethods methods = methodsOf(session);
        List<Rule<LogicalPlan>> rules = new ArrayList<>(Scala.list(methods.extraOptimizations()));
        rules.removeIf(other -> other instanceof PruningRule); // of the session that this is a clone of
        rules.add(rule);
        methods.extraOptimizations_$eq(Scala.seq(rules));
    }

    private static ExperimentalMethods methodsOf(SparkSession session) {
        return ((org.apache.spark.sql.classic.SparkSession) session).experimental();
    }

    private static LogicalPlan lastQuery() {
        List<Row> rows = new ArrayList<>();
        for (Rule<LogicalPlan> rule : Scala.list(methodsOf(SparkSession.active()).extraOptimizations())) {
            if (rule instanceof PruningRule ours) {
                for (Wire.ScanReport scan : ours.lastForSql()) {
                    rows.add(RowFactory.create(scan.table(), scan.files(), scan.filesOpened(), scan.bytes(),
                        scan.bytesOpened(), scan.seconds(), scan.reason(), scan.means(),
                        scan.filesRead(), scan.bytesRead(), scan.keys(), scan.keySeconds()));
                }
            }
        }
        Seq<Row> data = Scala.seq(rows);
        return LocalRelation.fromExternalRows(Scala.seq(Scala.list(DataTypeUtils.toAttributes(REPORT))), data);
    }

    /** A rule that changes nothing. */
    private static final class NoRule extends Rule<LogicalPlan> {
        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            return plan;
        }
    }
}

package hedgerow;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.execution.BaseSubqueryExec;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.execution.ReusedSubqueryExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SubqueryExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A condition on a file: TRUE if it may hold a row with the keys of every join. Spark evaluates it on the driver, for each
 * file of a scan, once the keys are there.
 *
 * @see RunTimeJoins
 */
final class FilesOfKeys extends Expression implements CodegenFallback, Serializable {
    /**
     * The files by the keys of one join.
     *
     * @param areSearched whether Spark has looked the keys up in the bounds
     * @param filters null if there are none
     * @param budget the seconds that the query waits for second runs
     */
    record Join(FileBounds bounds, boolean areSearched, KeyFilters filters, double budget) {
        Chosen chosen(Object[] keys) {
            BitSet places = bounds.places(keys, areSearched);
            String bits = filters == null || areSearched ? null
                : filters.files(keys, file -> bounds.mayHold(file, places));
            return new Chosen(bounds, places, bits, keys.length);
        }
    }

    /** The files that some keys choose. `bits`: a 1 for each file that filters let pass; null: they were not asked. */
    private record Chosen(FileBounds bounds, BitSet places, String bits, long asked) {
        boolean has(int file) {
            return (bits == null || bits.charAt(file) == '1') && bounds.mayHold(file, places);
        }

        long keys() {
            return bits == null ? places.cardinality() : asked;
        }
    }

    private final transient List<Expression> children; // the number of the file, then a subquery for each join
    private final transient List<Join> joins;
    private final transient FileChoice listed;
    private final transient ReadFiles read;
    private final transient AtomicLong waitedSince; // for second runs
    private transient List<Chosen> chosen; // by the keys of joins that are known; null: not looked at yet

    FilesOfKeys(List<Expression> children, List<Join> joins, FileChoice listed, ReadFiles read) {
        this(children, joins, listed, read, new AtomicLong());
    }

    private FilesOfKeys(
            List<Expression> children, List<Join> joins, FileChoice listed, ReadFiles read, AtomicLong waitedSince) {
        this.children = children;
        this.joins = joins;
        this.listed = listed;
        this.read = read;
        this.waitedSince = waitedSince;
    }

    @Override
    public Object eval(InternalRow row) {
        int file = (Integer) children.get(0).eval(row);
        if (file == ReadFiles.UNKNOWN) {
            return true;
        }
        if (chosen == null) {
            chosen = chosen();
        }
        for (Chosen files : chosen) {
            if (!files.has(file)) {
                read.skip(file, listed.bytesOf(file));
                return false;
            }
        }
        return true;
    }

    private List<Chosen> chosen() {
        List<Chosen> found = new ArrayList<>();
        long begun = System.nanoTime();
        double waited = 0;
        for (int i = 0; i < joins.size(); i++) {
            InSubqueryExec run = finished(children.get(i + 1)); // null, too, if Spark has found no broadcast with the keys
            if (run != null && run.values().isDefined()) {
                found.add(joins.get(i).chosen(run.values().get()));
                waited = Math.max(waited, secondsOf(run.plan()));
            }
        }
        if (!found.isEmpty()) {
            read.choose(found.stream().mapToLong(Chosen::keys).sum(), waited + (System.nanoTime() - begun) / 1e9);
        }
        return found;
    }

    private static InSubqueryExec finished(Expression child) {
        return child instanceof KeysInTime keys ? keys.finished()
            : child instanceof DynamicPruningExpression pruning && pruning.child() instanceof InSubqueryExec run ? run : null;
    }

    private static double secondsOf(BaseSubqueryExec plan) {
        SparkPlan run = plan instanceof ReusedSubqueryExec reused ? reused.child() : plan;
        SQLMetric millis = Scala.map(run.metrics()).get("collectTime");
        return millis == null ? 0 : Math.max(0, millis.value()) / 1e3;
    }

    /** Returns a planned subquery with a limit of time. Spark starts it before the scan, and then waits for it. */
    private Expression inTime(Expression child, Join join) {
        return child instanceof DynamicPruningExpression pruning && pruning.child() instanceof InSubqueryExec run
            && run.plan() instanceof SubqueryExec ? new KeysInTime(run, join.budget, waitedSince) : child;
    }

    /** Plans go to executors with their conditions: these get one of Spark's own in its place, and never evaluate it. */
    private Object writeReplace() {
        return Literal.TrueLiteral();
    }

    @Override
    public Seq<Expression> children() {
        return Scala.seq(children);
    }

    @Override
    public Expression withNewChildrenInternal(IndexedSeq<Expression> others) {
        List<Expression> planned = new ArrayList<>(Scala.list(others));
        for (int i = 0; i < joins.size(); i++) {
            planned.set(i + 1, inTime(planned.get(i + 1), joins.get(i)));
        }
        return new FilesOfKeys(List.copyOf(planned), joins, listed, read, waitedSince);
    }

    @Override
    public ExprCode doGenCode(CodegenContext context, ExprCode code) {
        return CodegenFallback.super.doGenCode(context, code);
    }

    @Override
    public boolean nullable() {
        return false;
    }

    @Override
    public DataType dataType() {
        return DataTypes.BooleanType;
    }

    @Override
    public int productArity() {
        return 1;
    }

    @Override
    public Object productElement(int place) {
        return children();
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof FilesOfKeys;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof FilesOfKeys files && files.children.equals(children) && files.joins.equals(joins);
    }

    @Override
    public int hashCode() {
        return children.hashCode();
    }

    @Override
    public String prettyName() {
        return "hedgerow_files";
    }
}

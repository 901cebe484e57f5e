package hedgerow;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.execution.BaseSubqueryExec;
import org.apache.spark.sql.execution.ExecSubqueryExpression;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A second run of a side for its keys, for which the query waits only so long. Without the keys, all files stay. The run
 * itself goes on to its end: it reads little.
 *
 * <p>Spark starts the runs of a scan together, and then waits for one after the other. They share the time.
 */
final class KeysInTime extends ExecSubqueryExpression {
    private static final double MOMENT = 0.1; // seconds in which a run that has ended gives its keys

    private final InSubqueryExec run; // no child: Spark would wait for it, too
    private final double seconds;
    private final AtomicLong waitedSince; // for a run of the same scan; 0: not yet
    private volatile boolean isFinished; // else its result may not be whole yet

    KeysInTime(InSubqueryExec run, double seconds, AtomicLong waitedSince) {
        this.run = run;
        this.seconds = seconds;
        this.waitedSince = waitedSince;
    }

    /** Returns the run with its keys; null if they came too late, or not at all. */
    InSubqueryExec finished() {
        return isFinished ? run : null;
    }

    @Override
    public void updateResult() {
        CompletableFuture<Void> result = new CompletableFuture<>();
        Thread waiting = new Thread(() -> {
            try {
                run.updateResult();
                result.complete(null);
            } catch (Throwable error) {
                result.completeExceptionally(error);
            }
        }, "hedgerow-keys");
        waiting.setDaemon(true);
        waiting.start();
        try {
            result.get((long) (secondsLeft() * 1e9), TimeUnit.NANOSECONDS);
            isFinished = true;
        } catch (TimeoutException | ExecutionException late) {
            PruningRule.LOG.info("Hedgerow goes on without the keys of a join: " + late);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted");
        }
    }

    private double secondsLeft() {
        boolean isFirst = waitedSince.compareAndSet(0, System.nanoTime());
        double waited = isFirst ? 0 : (System.nanoTime() - waitedSince.get()) / 1e9;
        return Math.max(seconds - waited, Math.min(seconds, MOMENT));
    }

    @Override
    public BaseSubqueryExec plan() {
        return run.plan();
    }

    @Override
    public ExecSubqueryExpression withNewPlan(BaseSubqueryExec plan) {
        return new KeysInTime(run.withNewPlan(plan), seconds, waitedSince);
    }

    @Override
    public ExprId exprId() {
        return run.exprId();
    }

    @Override
    public Expression canonicalized() {
        return new KeysInTime(run.canonicalized(), seconds, waitedSince);
    }

    @Override
    public DataType dataType() {
        return run.dataType();
    }

    @Override
    public boolean nullable() {
        return run.nullable();
    }

    @Override
    public Object eval(InternalRow row) {
        throw new UnsupportedOperationException("only its keys are read");
    }

    @Override
    public ExprCode doGenCode(CodegenContext context, ExprCode code) {
        throw new UnsupportedOperationException("only its keys are read");
    }

    @Override
    public Seq<Expression> children() {
        return Scala.none();
    }

    @Override
    public Expression withNewChildrenInternal(IndexedSeq<Expression> none) {
        return this;
    }

    @Override
    public String toString() {
        return run.toString();
    }

    @Override
    public int productArity() {
        return 1;
    }

    @Override
    public Object productElement(int place) {
        return run;
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof KeysInTime;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof KeysInTime keys && keys.run.equals(run) && keys.seconds == seconds;
    }

    @Override
    public int hashCode() {
        return run.hashCode();
    }
}

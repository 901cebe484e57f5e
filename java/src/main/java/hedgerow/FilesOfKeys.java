package hedgerow;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.execution.InSubqueryExec;
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
    /** The files by the keys of one join. `areSearched`: Spark has looked the keys up in the bounds. */
    record Join(FileBounds bounds, boolean areSearched) {}

    private final transient List<Expression> children; // the number of the file, then a subquery for each join
    private final transient List<Join> joins;
    private final transient ReadFiles read;
    private transient int[][] places; // of the keys of each join; null: not known

    FilesOfKeys(List<Expression> children, List<Join> joins, ReadFiles read) {
        this.children = children;
        this.joins = joins;
        this.read = read;
    }

    @Override
    public Object eval(InternalRow row) {
        int file = (Integer) children.get(0).eval(row);
        if (file == ReadFiles.UNKNOWN) {
            return true;
        }
        if (places == null) {
            places = places();
        }
        for (int i = 0; i < places.length; i++) {
            if (places[i] != null && !joins.get(i).bounds.mayHold(file, places[i])) {
                read.skip(file);
                return false;
            }
        }
        return true;
    }

    private int[][] places() {
        int[][] found = new int[joins.size()][];
        for (int i = 0; i < found.length; i++) {
            if (children.get(i + 1) instanceof DynamicPruningExpression pruning
                    && pruning.child() instanceof InSubqueryExec run && run.values().isDefined()) {
                Join join = joins.get(i);
                found[i] = join.bounds.places(run.values().get(), join.areSearched);
            } // or Spark has found no broadcast with the keys
        }
        if (Arrays.stream(found).anyMatch(Objects::nonNull)) {
            read.choose(Arrays.stream(found).filter(Objects::nonNull).mapToLong(known -> known.length).sum());
        }
        return found;
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
        return new FilesOfKeys(List.copyOf(Scala.list(others)), joins, read);
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

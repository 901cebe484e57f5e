package hedgerow;

import java.util.List;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.BROADCAST$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import scala.Option;

/**
 * One side of a join, whose keys may choose the files of the other.
 *
 * @param plan as the join has it
 * @param reduced without rows that other joins drop
 * @param isBroadcast whether Spark is expected to broadcast it for the join
 * @param isOnce whether it gives the same rows if it runs only once
 * @param isRepeatable whether it gives the same rows each time it runs
 * @param bytes what the leaves of `reduced` read
 */
record JoinSide(LogicalPlan plan, LogicalPlan reduced, List<Expression> keys, boolean isBroadcast, boolean isOnce,
        boolean isRepeatable, double bytes) {
    /** The joins for which Spark broadcasts the left side, or the right one. */
    private static final Set<String> BROADCAST_LEFT = Set.of("Inner", "Cross");
    private static final Set<String> BROADCAST_RIGHT = Set.of("Inner", "Cross", "LeftSemi");
    private static final long LEAST_BYTES = 32L << 20; // of files that are still to be opened: planning takes 0.05 s more
    private static final long SMALL = 64 << 10; // a list of ids; a larger table without a condition may have them all
    private static final int AGAIN = 2; // as many times that pay for a second run of the side
    private static final int OF_SIDE = 16; // and as many times what the side reads
    private static final double BYTES_PER_SECOND = 100e6; // that a core reads of Parquet files, or fewer

    /** How often the side runs: not for its keys, once for them and the join, or again for them. */
    enum Run { NEVER, ONCE, AGAIN }

    static JoinSide of(
            Join join, LogicalPlan plan, LogicalPlan reduced, boolean isLeft, List<Expression> keys, Allowlist allowed) {
        boolean isRepeatable = runsAlike(reduced, allowed, false);
        return new JoinSide(plan, reduced, keys, isBroadcast(join, plan, isLeft),
            isRepeatable || runsAlike(plan, allowed, true), isRepeatable, bytes(reduced));
    }

    /** Returns a plan without rows whose column no row of a side has as its key. */
    static LogicalPlan reduced(LogicalPlan plan, ExprId column, JoinSide side, int key) {
        Attribute mine = Scala.list(plan.output()).stream()
            .filter(one -> one.exprId().equals(column)).findFirst().orElseThrow();
        Expression theirs = side.keys.get(key);
        return !mine.dataType().equals(theirs.dataType()) ? plan : new Join(plan, side.reduced, LeftSemi$.MODULE$,
            Option.apply(new EqualTo(mine, theirs)), JoinHint.NONE());
    }

    /** Returns whether one side's keys should rather choose the files of the other than the other way round. */
    static boolean isSmaller(Join join, boolean isLeft) {
        LogicalPlan side = isLeft ? join.left() : join.right();
        LogicalPlan other = isLeft ? join.right() : join.left();
        boolean isBroadcast = isBroadcast(join, side, isLeft);
        if (isBroadcast != isBroadcast(join, other, !isLeft)) {
            return isBroadcast;
        }
        return isBroadcast ? size(side) <= size(other) : bytes(side) <= bytes(other);
    }

    private static boolean isBroadcast(Join join, LogicalPlan side, boolean isLeft) {
        Option<HintInfo> hint = isLeft ? join.hint().leftHint() : join.hint().rightHint();
        boolean isHinted = hint.isDefined() && hint.get().strategy().contains(BROADCAST$.MODULE$);
        return (isLeft ? BROADCAST_LEFT : BROADCAST_RIGHT).contains(JoinEdges.kind(join))
            && (isHinted || size(side) <= SQLConf.get().autoBroadcastJoinThreshold());
    }

    private static double size(LogicalPlan plan) {
        return plan.stats().sizeInBytes().doubleValue();
    }

    private static double bytes(LogicalPlan plan) {
        List<LogicalPlan> children = Scala.list(plan.children());
        return children.isEmpty() ? size(plan) : children.stream().mapToDouble(JoinSide::bytes).sum();
    }

    /** Returns how often the side should run to choose among files of so many bytes. */
    Run run(long files) {
        long least = SessionSettings.number("hedgerow.runtimeBytes", LEAST_BYTES);
        boolean isCheap = Math.max(AGAIN * least, OF_SIDE * bytes) <= files && isSelective(reduced);
        boolean pays = isRepeatable && (isCheap || least == 0);
        if (pays && (!isBroadcast || reduced != plan)) {
            return Run.AGAIN;
        }
        boolean mayLack = isSelective(plan) || isComputed(plan) || size(plan) <= SMALL || least == 0;
        return isBroadcast && isOnce && files >= least && mayLack ? Run.ONCE : Run.NEVER;
    }

    /** Returns the seconds that a query may wait for keys: as long as reading so many bytes of files takes at least. */
    static double budget(long files) {
        double seconds = files / (BYTES_PER_SECOND * SparkContext.getOrCreate().defaultParallelism());
        return SessionSettings.decimal("hedgerow.runtimeSeconds", Math.max(1, seconds));
    }

    /** Returns the keys of the broadcast that the join needs anyway. */
    Expression broadcastKeys(int key) {
        return subquery(plan, keys, key, true);
    }

    /** Returns where the keys stand among bounds: the side runs again, and executors look its keys up. */
    Expression searchedKeys(int key, FileBounds bounds) {
        Alias place = Scala.alias(bounds.search(keys.get(key)), "place");
        return subquery(new Project(Scala.seq(List.of(place)), reduced), List.of(place.toAttribute()), 0, false);
    }

    /** Returns the keys, for which the side runs again. If there are more than `most`, it returns one more than that. */
    Expression fewKeys(int key, int most) {
        Alias alias = Scala.alias(keys.get(key), "key");
        List<Attribute> column = List.of(alias.toAttribute());
        LogicalPlan different = new Aggregate(Scala.seq(column), Scala.seq(column),
            new Project(Scala.seq(List.of(alias)), reduced), Option.empty());
        Literal limit = new Literal(most + 1, DataTypes.IntegerType);
        return subquery(new GlobalLimit(limit, new LocalLimit(limit, different)), column, 0, false);
    }

    private static Expression subquery(LogicalPlan plan, List<? extends Expression> keys, int key, boolean onlyBroadcast) {
        return new DynamicPruningSubquery(Literal.create(null, keys.get(key).dataType()), plan, Scala.seq(keys),
            Scala.seq(List.of(key)), onlyBroadcast, NamedExpression.newExprId(), Option.empty());
    }

    private static boolean isSelective(LogicalPlan plan) {
        return plan instanceof LocalRelation
            || plan instanceof Filter filter && selects(filter.condition())
            || Scala.list(plan.children()).stream().anyMatch(JoinSide::isSelective);
    }

    /** Returns whether a leaf is no table: rows of a program, or cached ones. */
    private static boolean isComputed(LogicalPlan plan) {
        List<LogicalPlan> children = Scala.list(plan.children());
        return children.isEmpty() ? !(plan instanceof LogicalRelation) : children.stream().anyMatch(JoinSide::isComputed);
    }

    private static boolean selects(Expression condition) {
        return condition instanceof And and
            ? selects(and.left()) || selects(and.right()) : !(condition instanceof IsNotNull);
    }

    /** Returns whether a plan gives the same rows each time; `isOnce`: its leaves run once. */
    private static boolean runsAlike(LogicalPlan plan, Allowlist allowed, boolean isOnce) {
        boolean isLeaf = plan instanceof LogicalRelation relation && relation.relation() instanceof HadoopFsRelation files
                && (isOnce || isListed(files.location()))
            || isOnce && (plan instanceof LogicalRDD || plan instanceof InMemoryRelation);
        return (isLeaf || !(plan instanceof LogicalRelation) && allowed.isRepeatable(plan))
            && Scala.list(plan.expressions()).stream().noneMatch(e -> e.exists(part -> !isRepeatable(part, allowed)))
            && Scala.list(plan.subqueries()).stream().allMatch(query -> runsAlike(query, allowed, isOnce))
            && Scala.list(plan.children()).stream().allMatch(child -> runsAlike(child, allowed, isOnce));
    }

    /** Returns whether the files are listed already: a table that changes meanwhile has the same rows in both runs. */
    private static boolean isListed(FileIndex location) {
        return location instanceof PartitioningAwareFileIndex || location instanceof FileLists.Decided
            || Delta.IS_THERE && DeltaFiles.isOfSnapshot(location);
    }

    /** Returns whether a part of an expression has a value that the order of rows does not change. */
    private static boolean isRepeatable(Expression part, Allowlist allowed) {
        return part.deterministic() && !(part instanceof AggregateExpression aggregate
            && (!allowed.isRepeatable(aggregate.aggregateFunction())
                || aggregate.dataType() instanceof DoubleType || aggregate.dataType() instanceof FloatType));
    }
}

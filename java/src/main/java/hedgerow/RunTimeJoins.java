package hedgerow;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Lets the keys that one side of a join turns out to have choose the files of the other side, while the query runs.
 *
 * <pre>
 *     Join(user_id = id)                          Join(user_id = id)
 *       Filter(condition)                           Project(the same columns)
 *         Relation(files)                             Filter(condition AND FilesOfKeys(number, keys of side))
 *       side                             -&gt;             Relation(files, each a partition with its number)
 *                                                   side
 * </pre>
 *
 * Spark evaluates conditions on partitions on the driver, after their subqueries. The keys are those of the broadcast that
 * the join needs anyway, or of a second run of the side if that costs little.
 */
final class RunTimeJoins {
    private static final String NUMBER = "_hedgerow_file";

    /** A relation whose files may be chosen at run time. `choice`: the files that are skipped already. */
    record Target(
            Scan scan, OpenedTables.Table table, FileChoice choice, Wire.ScanReport planned, OpenedTables tables) {}

    /** A key of a side that a column of other rows must equal. `type`: the type in which both are compared. */
    private record Wanted(ExprId column, DataType type, JoinSide side, int key) {
        Wanted seenAs(ExprId below) {
            return new Wanted(below, type, side, key);
        }
    }

    private final QueryPlan query;
    private final Map<LogicalRelation, Target> targets;
    private final Python python;
    private final Set<LogicalPlan> repeated = new HashSet<>(); // aggregates that Spark computes once for several uses

    RunTimeJoins(QueryPlan query, Map<LogicalRelation, Target> targets, Python python) {
        this.query = query;
        this.targets = targets;
        this.python = python;
    }

    static boolean areOn() {
        return SessionSettings.isOn("hedgerow.runtime") && SQLConf.get().dynamicPartitionPruningEnabled();
    }

    LogicalPlan of(LogicalPlan root) {
        Set<LogicalPlan> seen = new HashSet<>();
        Scala.forEach(root, node -> {
            if (node instanceof Aggregate && !seen.add(node.canonicalized())) {
                repeated.add(node.canonicalized());
            }
        });
        return with(root, List.of());
    }

    /** Returns the plan without some rows that have no partner. `wanted`: the keys that its rows must have. */
    private LogicalPlan with(LogicalPlan plan, List<Wanted> above) {
        // The keys of one use would make it another plan than the others, to be computed by itself.
        List<Wanted> wanted = plan instanceof Aggregate && repeated.contains(plan.canonicalized()) ? List.of() : above;
        LogicalPlan node = withSubqueries(plan);
        if (node instanceof LogicalRelation relation) {
            return chosen(relation, null, wanted);
        }
        if (node instanceof Filter filter && filter.child() instanceof LogicalRelation relation) {
            return chosen(relation, filter, wanted);
        }
        if (node instanceof Join join) {
            return with(join, wanted);
        }
        List<LogicalPlan> children = Scala.list(node.children());
        List<LogicalPlan> changed = new ArrayList<>();
        for (LogicalPlan child : children) {
            List<Wanted> below = new ArrayList<>();
            for (Wanted one : wanted) {
                ExprId column = below(node, child, one.column);
                if (column != null) {
                    below.add(one.seenAs(column));
                }
            }
            changed.add(with(child, below));
        }
        return withChildren(node, children, changed);
    }

    private static LogicalPlan withChildren(
            LogicalPlan node, List<LogicalPlan> children, List<LogicalPlan> changed) {
        for (int i = 0; i < changed.size(); i++) {
            if (changed.get(i) != children.get(i)) {
                return node.withNewChildren(Scala.seq(changed));
            }
        }
        return node;
    }

    private LogicalPlan withSubqueries(LogicalPlan plan) {
        return Scala.list(plan.subqueries()).isEmpty() ? plan : plan.transformExpressions(Scala.rewrite(
            e -> e instanceof SubqueryExpression query ? query.withNewPlan(with(query.plan(), List.of())) : e));
    }

    /** Returns the column of a child whose rows may be left out with those of a column; null if that is not certain. */
    private static ExprId below(LogicalPlan node, LogicalPlan child, ExprId column) {
        if (node instanceof Filter filter) {
            return filter.condition().deterministic() ? column : null;
        }
        if (node instanceof Project project) {
            return JoinEdges.inner(project.projectList(), column, true);
        }
        if (node instanceof Aggregate aggregate) {
            return JoinEdges.innerKey(aggregate, column, true);
        }
        int place = node instanceof Union ? JoinEdges.place(node, column) : -1;
        return place < 0 ? null : Scala.list(child.output()).get(place).exprId();
    }

    private LogicalPlan with(Join join, List<Wanted> wanted) {
        List<Wanted> ofLeft = new ArrayList<>();
        List<Wanted> ofRight = new ArrayList<>();
        for (Wanted one : wanted) {
            if (JoinEdges.has(join.left(), one.column)) {
                if (JoinEdges.leftRowsCanGo(join)) {
                    ofLeft.add(one);
                }
            } else if (JoinEdges.has(join.right(), one.column) && JoinEdges.rightRowsCanGo(join)) {
                ofRight.add(one);
            }
        }
        var keys = ExtractEquiJoinKeys$.MODULE$.unapply(join);
        List<Expression> leftKeys = keys.isDefined() ? Scala.list(keys.get()._2()) : List.of();
        List<Expression> rightKeys = keys.isDefined() ? Scala.list(keys.get()._3()) : List.of();
        Use ofLeftKeys = JoinEdges.leftRowsNeedPartners(join) ? use(join.left(), leftKeys) : Use.NONE;
        Use ofRightKeys = JoinEdges.rightRowsNeedPartners(join) ? use(join.right(), rightKeys) : Use.NONE;
        boolean isLeft = ofLeftKeys.compareTo(ofRightKeys) > 0
            || ofLeftKeys == ofRightKeys && ofLeftKeys != Use.NONE && JoinSide.isSmaller(join, false);
        LogicalPlan left = join.left();
        LogicalPlan right = join.right();
        if (isLeft) {
            right = with(right, ofRight);
            add(ofLeft, leftKeys, side(join, right, false, rightKeys, ofRight));
        }
        left = with(left, ofLeft);
        if (!isLeft) {
            if (ofRightKeys != Use.NONE) {
                add(ofRight, rightKeys, side(join, left, true, leftKeys, ofLeft));
            }
            right = with(right, ofRight);
        }
        return withChildren(join, List.of(join.left(), join.right()), List.of(left, right));
    }

    /** How keys serve a target: not, by dropping rows of a side of its joins, or by choosing its files. */
    private enum Use { NONE, ON_THE_WAY, DIRECT }

    private Use use(LogicalPlan side, List<Expression> keys) {
        List<AttributeReference> columns = keys.stream().map(RunTimeJoins::column).filter(Objects::nonNull).toList();
        boolean isDirect = columns.stream().flatMap(column -> JoinEdges.origins(side, column.exprId(), true).stream())
            .anyMatch(at -> targets.containsKey(at.relation()));
        return isDirect ? Use.DIRECT : !columns.isEmpty() && hasTarget(side) ? Use.ON_THE_WAY : Use.NONE;
    }

    private boolean hasTarget(LogicalPlan plan) {
        return targets.containsKey(plan) || Scala.list(plan.children()).stream().anyMatch(this::hasTarget);
    }

    /** Returns the column of a key, perhaps of a narrower type; null for others. */
    static AttributeReference column(Expression key) {
        Expression plain = key instanceof Cast cast ? cast.child() : key;
        return plain instanceof AttributeReference column && FileBounds.fit(key.dataType(), column.dataType())
            ? column : null;
    }

    private JoinSide side(
            Join join, LogicalPlan plan, boolean isLeft, List<Expression> keys, List<Wanted> wanted) {
        LogicalPlan reduced = plan;
        for (Wanted one : wanted) {
            reduced = JoinSide.reduced(reduced, one.column, one.side, one.key);
        }
        return JoinSide.of(join, plan, reduced, isLeft, keys, python.allowed());
    }

    private static void add(List<Wanted> wanted, List<Expression> keys, JoinSide other) {
        for (int i = 0; i < keys.size(); i++) {
            AttributeReference column = column(keys.get(i));
            if (column != null && keys.get(i).dataType().equals(other.keys().get(i).dataType())) {
                wanted.add(new Wanted(column.exprId(), keys.get(i).dataType(), other, i));
            }
        }
    }

    /** Returns a relation, with the filter above it, over the files with the wanted keys. */
    private LogicalPlan chosen(LogicalRelation relation, Filter filter, List<Wanted> wanted) {
        Target target = wanted.isEmpty() ? null : targets.get(relation);
        LogicalPlan found = target == null ? null : chosen(relation, filter, wanted, target);
        return found != null ? found : filter != null ? filter : relation;
    }

    private LogicalPlan chosen(LogicalRelation relation, Filter filter, List<Wanted> wanted, Target target) {
        if (target.planned.filesOpened() < 2 || !target.scan.files().canBeNumbered()
                || Scala.list(relation.output()).stream().anyMatch(column -> column.name().equals(NUMBER))) {
            return null;
        }
        AttributeReference number = new AttributeReference(NUMBER, DataTypes.IntegerType, false,
            Metadata.empty(), NamedExpression.newExprId(), Scala.none());
        List<Expression> parts = new ArrayList<>(List.of(number));
        List<FilesOfKeys.Join> joins = new ArrayList<>();
        for (Wanted one : wanted) {
            add(one, relation, target, parts, joins);
        }
        if (joins.isEmpty()) {
            return null;
        }
        ReadFiles read = new ReadFiles();
        query.skipLater(target.planned, read);
        Expression files = new FilesOfKeys(List.copyOf(parts), List.copyOf(joins), target.choice, read);
        Expression condition = filter == null ? files : new And(filter.condition(), files);
        return new Project(Scala.seq(Scala.list(relation.output())),
            new Filter(condition, numbered(relation, number, target)));
    }

    private void add(
            Wanted wanted, LogicalRelation relation, Target target, List<Expression> parts, List<FilesOfKeys.Join> joins) {
        AttributeReference column = Scala.list(relation.output()).stream()
            .filter(one -> one.exprId().equals(wanted.column) && Scala.isData(one)).findFirst().orElse(null);
        JoinSide.Run run = column == null ? JoinSide.Run.NEVER : wanted.side.run(target.planned.bytesOpened());
        FileBounds bounds = run == JoinSide.Run.NEVER ? null
            : target.tables.bounds(target.table, relation, column, wanted.type);
        if (bounds == null) {
            return;
        }
        KeyFilters filters = filters(target, relation, column, wanted.type, bounds);
        boolean isAgain = run == JoinSide.Run.AGAIN;
        boolean isSearched = isAgain && (filters == null || bounds.divide());
        parts.add(!isAgain ? wanted.side.broadcastKeys(wanted.key)
            : isSearched ? wanted.side.searchedKeys(wanted.key, bounds)
            : wanted.side.fewKeys(wanted.key, filters.most()));
        double budget = JoinSide.budget(target.planned.bytesOpened());
        joins.add(new FilesOfKeys.Join(bounds, isSearched, filters, budget));
    }

    /** Returns the filters of look-ups on a column; null if there are none. */
    private KeyFilters filters(
            Target target, LogicalRelation relation, AttributeReference column, DataType type, FileBounds bounds) {
        Expression seen = NormalTree.over(relation).of(column);
        Expression widened = column.dataType().equals(type) ? seen
            : new Cast(seen, type, Option.empty(), EvalMode$.MODULE$.fromSQLConf(SQLConf.get()));
        return bounds.files().lookedUp() == 0 ? null : KeyFilters.of(
            python, target.table.handle(), widened, target.choice, bounds.files().lookedUp());
    }

    private static LogicalRelation numbered(LogicalRelation relation, AttributeReference number, Target target) {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        StructType partitions = files.partitionSchema().add(NUMBER, DataTypes.IntegerType, false);
        List<AttributeReference> output = new ArrayList<>(Scala.list(relation.output()));
        output.add(number);
        HadoopFsRelation listed = files.copy(
            target.scan.files().numbered(files.location(), target.choice, target.table.index(), target.planned),
            partitions, files.dataSchema(), files.bucketSpec(), files.fileFormat(), files.options(),
            files.sparkSession());
        LogicalRelation found = relation.copy(
            listed, Scala.seq(output), relation.catalogTable(), relation.isStreaming(), relation.stream());
        found.copyTagsFrom(relation);
        return found;
    }

    /** Returns whether a column numbers the files of a scan, and is none of the table. */
    static boolean isNumber(String column) {
        return column.equals(NUMBER);
    }
}

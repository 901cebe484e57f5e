package hedgerow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.KnownFloatingPointNormalized;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * The equi-joins of a query, as edges: rows of one relation can change the result only if their column equals a column
 * of some row of the other relation that its filter keeps. To leave out the rest is a semi-join, so any number of edges
 * may be used one after the other.
 */
final class JoinEdges {
    private static final Set<String> LEFT_ROWS_NEED_PARTNERS = Set.of("Inner", "Cross", "LeftSemi", "RightOuter");
    private static final Set<String> RIGHT_ROWS_NEED_PARTNERS =
        Set.of("Inner", "Cross", "LeftSemi", "LeftOuter", "LeftAnti");
    private static final Set<String> LEFT_ROWS_CAN_GO =
        Set.of("Inner", "Cross", "LeftSemi", "LeftAnti", "LeftOuter");
    private static final Set<String> RIGHT_ROWS_CAN_GO = Set.of("Inner", "Cross", "RightOuter");

    /** A column of a relation. */
    record Origin(LogicalRelation relation, AttributeReference column) {}

    /** Two columns that are equal in all rows that a join keeps. */
    record Pair(AttributeReference mine, AttributeReference theirs) {}

    private final Map<LogicalRelation, Map<LogicalRelation, List<Pair>>> byRelation = new IdentityHashMap<>();
    // A relation's first column -> the conditions right above it, or TRUE, at each place in the plan.
    private final Map<ExprId, List<Expression>> appearances = new HashMap<>();

    JoinEdges(LogicalPlan root) {
        read(root);
    }

    private void read(LogicalPlan plan) {
        List<LogicalPlan> children = Scala.list(plan.children());
        if (plan instanceof LogicalRelation relation) {
            appears(relation, Literal.TrueLiteral());
        } else if (plan instanceof Filter filter && filter.child() instanceof LogicalRelation relation) {
            appears(relation, filter.condition());
            children = List.of();
        } else if (plan instanceof Join join && join.condition().isDefined()) {
            conjuncts(join.condition().get()).forEach(condition -> read(join, condition));
        }
        children.forEach(this::read);
        Scala.list(plan.subqueries()).forEach(this::read);
    }

    private void appears(LogicalRelation relation, Expression condition) {
        Scala.list(relation.output()).stream().limit(1).forEach(
            column -> appearances.computeIfAbsent(column.exprId(), id -> new ArrayList<>()).add(condition));
    }

    private List<Expression> appearances(LogicalRelation relation) {
        List<AttributeReference> columns = Scala.list(relation.output());
        return columns.isEmpty() ? List.of() : appearances.getOrDefault(columns.get(0).exprId(), List.of());
    }

    private void read(Join join, Expression condition) {
        AttributeReference left = condition instanceof EqualTo equal ? column(equal.left()) : null;
        AttributeReference right = condition instanceof EqualTo equal ? column(equal.right()) : null;
        if (left != null && right != null) {
            if (join.left().outputSet().contains(left) && join.right().outputSet().contains(right)) {
                read(join, left, right);
            } else if (join.left().outputSet().contains(right) && join.right().outputSet().contains(left)) {
                read(join, right, left);
            }
        }
    }

    /**
     * Returns the column of a join key, or null; of no type that the index orders otherwise, such as a collated text.
     * Spark wraps keys of floats, so that 0.0 and -0.0 become one value.
     */
    private static AttributeReference column(Expression key) {
        Expression plain = key instanceof KnownFloatingPointNormalized known
            && known.child() instanceof NormalizeNaNAndZero wrapper ? wrapper.child() : key;
        return plain instanceof AttributeReference column && Values.areOrdered(column.dataType()) ? column : null;
    }

    private void read(Join join, AttributeReference left, AttributeReference right) {
        if (leftRowsNeedPartners(join)) {
            add(join.left(), left, join.right(), right);
        }
        if (rightRowsNeedPartners(join)) {
            add(join.right(), right, join.left(), left);
        }
    }

    static String kind(Join join) {
        return join.joinType().getClass().getSimpleName().replace("$", "");
    }

    static boolean leftRowsNeedPartners(Join join) {
        return LEFT_ROWS_NEED_PARTNERS.contains(kind(join));
    }

    static boolean rightRowsNeedPartners(Join join) {
        return RIGHT_ROWS_NEED_PARTNERS.contains(kind(join));
    }

    static boolean leftRowsCanGo(Join join) {
        return LEFT_ROWS_CAN_GO.contains(kind(join));
    }

    static boolean rightRowsCanGo(Join join) {
        return RIGHT_ROWS_CAN_GO.contains(kind(join));
    }

    /** Adds edges from the side whose rows may be left out. */
    private void add(LogicalPlan side, AttributeReference mine, LogicalPlan other, AttributeReference theirs) {
        List<Origin> ends = origins(other, theirs.exprId(), false);
        if (ends.size() != 1) {
            return;
        }
        Origin to = ends.get(0);
        for (Origin from : origins(side, mine.exprId(), true)) {
            if (from.relation != to.relation) {
                byRelation.computeIfAbsent(from.relation, relation -> new IdentityHashMap<>())
                    .computeIfAbsent(to.relation, relation -> new ArrayList<>())
                    .add(new Pair(from.column, to.column));
            }
        }
    }

    /**
     * Returns the relations and their columns that a plan's column comes from, several below a union; none if that is
     * not certain. `droppable`: to leave out a relation's rows with one value must do no more than to leave out the
     * plan's rows with this value. Otherwise each value of the column has to be that of a row of the relation.
     */
    static List<Origin> origins(LogicalPlan plan, ExprId id, boolean droppable) {
        if (plan instanceof LogicalRelation relation) {
            return Scala.list(relation.output()).stream()
                .filter(column -> column.exprId().equals(id) && Scala.isData(column))
                .map(column -> new Origin(relation, column)).limit(1).toList();
        }
        if (plan instanceof Filter filter) {
            return !droppable || filter.condition().deterministic() ? origins(filter.child(), id, droppable) : List.of();
        }
        if (plan instanceof Project project) {
            ExprId inner = inner(project.projectList(), id, droppable);
            return inner == null ? List.of() : origins(project.child(), inner, droppable);
        }
        if (plan instanceof Aggregate aggregate) {
            ExprId inner = innerKey(aggregate, id, droppable);
            return inner == null ? List.of() : origins(aggregate.child(), inner, droppable);
        }
        if (plan instanceof Join join) {
            if (has(join.left(), id) && (!droppable || leftRowsCanGo(join))) {
                return origins(join.left(), id, droppable);
            }
            return has(join.right(), id) && (!droppable || rightRowsCanGo(join))
                ? origins(join.right(), id, droppable) : List.of();
        }
        int place = plan instanceof Union && droppable ? place(plan, id) : -1;
        return place < 0 ? List.of() : Scala.list(plan.children()).stream()
            .flatMap(child -> origins(child, Scala.list(child.output()).get(place).exprId(), true).stream()).toList();
    }

    /** Returns the column by which an aggregate groups, and that its column `id` shows; null for none. */
    static ExprId innerKey(Aggregate aggregate, ExprId id, boolean droppable) {
        ExprId inner = inner(aggregate.aggregateExpressions(), id, droppable);
        boolean isKey = Scala.list(aggregate.groupingExpressions()).stream()
            .anyMatch(key -> key instanceof AttributeReference column && column.exprId().equals(inner));
        return isKey ? inner : null;
    }

    /** Returns the column below a list of expressions that has the value of the column `id` above it; null for none. */
    static ExprId inner(Seq<NamedExpression> expressions, ExprId id, boolean droppable) {
        ExprId found = null;
        for (NamedExpression e : Scala.list(expressions)) {
            if (droppable && !((Expression) e).deterministic()) {
                return null;
            }
            if (e instanceof AttributeReference column && column.exprId().equals(id)) {
                found = id;
            } else if (e instanceof Alias alias && alias.exprId().equals(id)
                    && alias.child() instanceof AttributeReference column) {
                found = column.exprId();
            }
        }
        return found;
    }

    static boolean has(LogicalPlan plan, ExprId id) {
        return place(plan, id) >= 0;
    }

    static int place(LogicalPlan plan, ExprId id) {
        List<Attribute> columns = Scala.list(plan.output());
        return IntStream.range(0, columns.size()).filter(i -> columns.get(i).exprId().equals(id)).findFirst().orElse(-1);
    }

    /** Returns the relations that edges lead to, with the joined columns; of a relation that appears once in the plan. */
    Map<LogicalRelation, List<Pair>> from(LogicalRelation relation) {
        return appearsOnce(relation) ? byRelation.getOrDefault(relation, Map.of()) : Map.of();
    }

    /** Visits the columns of each edge. */
    void forEach(Consumer<List<Pair>> visit) {
        byRelation.values().forEach(others -> others.values().forEach(visit));
    }

    boolean appearsOnce(LogicalRelation relation) {
        return appearances(relation).size() == 1;
    }

    /** Returns the relations that edges over all columns of a foreign key lead to. */
    Stream<LogicalRelation> to(LogicalRelation relation, Wire.Key key) {
        return from(relation).entrySet().stream()
            .filter(edge -> IntStream.range(0, key.columns().size()).allMatch(i -> edge.getValue().stream().anyMatch(
                pair -> is(pair.mine, key.columns().get(i), key.types().get(i))
                    && is(pair.theirs, key.others().get(i), key.types().get(i)))))
            .map(Map.Entry::getKey);
    }

    /** Returns whether the query sees a key's column under its name and type: the type says which keys are equal. */
    private static boolean is(AttributeReference seen, String name, String type) {
        boolean isSame = SQLConf.get().caseSensitiveAnalysis()
            ? seen.name().equals(name) : seen.name().equalsIgnoreCase(name);
        return isSame && Scala.typeOf(seen).equals(type);
    }

    /**
     * Returns what holds on all rows of a relation that a query needs, wherever the relation appears: Spark repeats it
     * in a subquery that makes a Bloom filter of it.
     */
    Expression condition(LogicalRelation relation) {
        List<Expression> places = appearances(relation);
        if (places.isEmpty()) {
            return Literal.TrueLiteral();
        }
        return conjuncts(places.get(0)).stream()
            .filter(part -> places.stream().skip(1).allMatch(
                place -> conjuncts(place).stream().anyMatch(part::semanticEquals)))
            .reduce(And::new).orElse(Literal.TrueLiteral());
    }

    /** Returns whether the query leaves out some rows of a relation, other than those with NULL. */
    boolean filters(LogicalRelation relation) {
        return conjuncts(condition(relation)).stream()
            .anyMatch(part -> !(part instanceof IsNotNull) && !part.equals(Literal.TrueLiteral()));
    }

    private static List<Expression> conjuncts(Expression condition) {
        return condition instanceof And and
            ? Stream.of(and.left(), and.right()).flatMap(part -> conjuncts(part).stream()).toList()
            : List.of(condition);
    }
}

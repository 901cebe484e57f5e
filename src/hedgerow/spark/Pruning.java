/*
 * The rule that lets every query of a session skip files. `spark/attach.py` compiles it at run time with the Janino
 * that Spark brings (hence raw types and no lambdas) and adds it to the session's optimizer rules.
 *
 *     Filter(condition)                               Filter(condition)
 *       Relation(files listed by Spark or Delta)  ->    Relation(the same list without the files to skip)
 *
 * It knows nothing of tables and predicates: it writes the condition down, Python answers which of the files that it
 * knows cannot matter, and only those are left out, by name and size. What goes wrong leaves the plan as it is.
 */
package hedgerow;

import java.io.FileNotFoundException;
import java.lang.ref.WeakReference;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Contains;
import org.apache.spark.sql.catalyst.expressions.EndsWith;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.delta.actions.AddFile; // Delta
import org.apache.spark.sql.delta.stats.DataSize; // Delta
import org.apache.spark.sql.delta.stats.DeltaScan; // Delta
import org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex; // Delta
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

public class Pruning extends Rule {
    /** Options that change which rows a relation of Parquet files has, or what is in them. */
    static final String[] ODD_OPTIONS = {
        "mergeSchema", "datetimeRebaseMode", "int96RebaseMode", "pathGlobFilter", "modifiedBefore", "modifiedAfter",
        "recursiveFileLookup"
    };
    /** What decides the meaning of expressions, beside all that is set of the old ways. */
    static final String[] MEANING = {
        "spark.sql.ansi.enabled",
        "spark.sql.session.timeZone",
        "spark.sql.caseSensitive",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.timestampType"
    };
    static final String DELTA = "org.apache.spark.sql.delta.";
    private volatile Function python;
    private final ThreadLocal answered = new ThreadLocal();
    private final Map lists = Collections.synchronizedMap(new HashMap());
    private volatile String last = "[]";
    private volatile String trouble = "";

    public void answeredBy(Function answers) {
        python = answers;
    }

    /** What was decided for the scans of the last query, as JSON. */
    public String last() {
        return last;
    }

    /** Why some plan was left as it is, if that was not meant to be; for tests. */
    public String trouble() {
        return trouble;
    }

    public TreeNode apply(TreeNode plan) {
        LogicalPlan root = (LogicalPlan) plan;
        WeakReference before = (WeakReference) answered.get();
        if (before != null && before.get() == plan) {
            return plan; // the optimizer asks again until nothing changes
        }
        try {
            if (!isEnabled() || root instanceof Subquery || root instanceof Command || root.isStreaming()
                    || inTransaction()) {
                return plan; // subqueries are reached from the query that holds them
            }
            Visit visit = new Visit(this);
            TreeNode found = (TreeNode) root.transformDownWithSubqueries(visit);
            if (visit.sawFiles) {
                last = "[" + String.join(",", (List) visit.scans) + "]";
            }
            answered.set(new WeakReference(found));
            return found;
        } catch (Exception error) {
            trouble = error.toString();
            return plan;
        } catch (LinkageError error) {
            trouble = error.toString();
            return plan;
        }
    }

    private static boolean isEnabled() {
        return !"false".equalsIgnoreCase(SQLConf.get().getConfString("hedgerow.enabled", "true"));
    }

    /** What MERGE, UPDATE and DELETE read is Delta's to choose. */
    private static boolean inTransaction() throws Exception {
        Class transaction;
        try {
            transaction = Class.forName(
                DELTA + "OptimisticTransaction", true, Thread.currentThread().getContextClassLoader());
        } catch (ClassNotFoundException none) {
            return false;
        }
        return ((Option) transaction.getMethod("getActive", new Class[0]).invoke(null, new Object[0])).isDefined();
    }

    // --- one scan ---

    /** The relation without the files to skip; itself if there are none. */
    LogicalRelation pruned(LogicalRelation relation, Expression condition, Visit visit) throws Exception {
        long start = System.nanoTime();
        if (!(relation.relation() instanceof HadoopFsRelation) || relation.isStreaming()) {
            return relation;
        }
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        FileIndex location = files.location();
        if (location instanceof Decided) {
            visit.note(((Decided) location).told());
            return relation;
        }
        boolean isDelta = location.getClass().getName().equals(DELTA + "stats.PreparedDeltaFileIndex");
        if (!isDelta && !isPlainParquet(files)) {
            return relation;
        }
        visit.sawFiles = true;
        String root = isDelta ? call(location, "path").toString() : rootOf((PartitioningAwareFileIndex) location);
        String lists = root == null ? null : lists(root, files);
        if (lists == null) {
            return relation;
        }
        StringBuilder request = new StringBuilder("{\"root\":");
        quote(root, request);
        request.append(",\"lists\":").append(lists);
        request.append(",\"settings\":").append(settings());
        if (isDelta) {
            Object metadata = call(call(call(location, "preparedScan"), "scannedSnapshot"), "metadata");
            request.append(",\"schema\":").append((String) call(metadata, "schemaString"));
        }
        request.append(",\"where\":");
        new Condition(request).write(condition);
        String[] answer = ((String) python.apply(request.append("}").toString())).split("\n", -1);
        if (answer.length != 3) {
            if (answer[0].length() > 0) {
                trouble = answer[0];
            }
            return relation;
        }
        Skip skip = toSkip(answer[0], answer[2]);
        LogicalRelation found = isDelta
            ? delta(relation, files, location, skip, answer[1], start, visit)
            : parquet(relation, files, (PartitioningAwareFileIndex) location, skip, answer[1], start, visit);
        return found;
    }

    /** The names in the folder that makes a table a managed one, as JSON; null where it is not. */
    private static String lists(String root, HadoopFsRelation files) throws Exception {
        Path side = new Path(root, "_hedgerow");
        FileStatus[] found;
        try {
            found = side.getFileSystem(files.sparkSession().sparkContext().hadoopConfiguration()).listStatus(side);
        } catch (FileNotFoundException none) {
            return null;
        }
        StringBuilder out = new StringBuilder("[");
        for (int i = 0; i < found.length; i++) {
            String name = found[i].getPath().getName();
            if (name.endsWith(".json") && (name.startsWith("manifest-") || name.startsWith("delta-"))) {
                out.append(out.length() > 1 ? "," : "");
                quote(name, out);
            }
        }
        return out.length() > 1 ? out.append("]").toString() : null;
    }

    /** The files that Python said no to. */
    private Skip toSkip(String handle, String bits) {
        Skip known = (Skip) lists.get(handle);
        if (known == null) {
            String listed = (String) python.apply("files " + handle);
            known = Skip.of(listed.length() == 0 ? new String[0] : listed.split("\n", -1));
            if (lists.size() > 100) {
                lists.clear();
            }
            lists.put(handle, known);
        }
        return known.where(bits);
    }

    private static boolean isPlainParquet(HadoopFsRelation files) {
        for (int i = 0; i < ODD_OPTIONS.length; i++) {
            if (files.options().contains(ODD_OPTIONS[i]) || files.options().contains(ODD_OPTIONS[i].toLowerCase())) {
                return false;
            }
        }
        return files.location() instanceof PartitioningAwareFileIndex
            && files.fileFormat().getClass() == ParquetFileFormat.class
            && files.partitionSchema().isEmpty()
            && files.bucketSpec().isEmpty();
    }

    /** The one folder that all files are in; null if there are several. */
    private static String rootOf(PartitioningAwareFileIndex location) {
        Seq roots = location.rootPaths();
        if (roots.isEmpty()) {
            return null;
        }
        Path first = (Path) roots.head();
        if (roots.size() == 1) {
            Iterator files = location.allFiles().iterator();
            boolean isFile = files.hasNext() && ((FileStatus) files.next()).getPath().equals(first);
            return (isFile ? first.getParent() : first).toString();
        }
        for (Iterator each = roots.iterator(); each.hasNext();) {
            if (!first.getParent().equals(((Path) each.next()).getParent())) {
                return null;
            }
        }
        return first.getParent().toString();
    }

    private static LogicalRelation parquet(LogicalRelation relation, HadoopFsRelation files,
            PartitioningAwareFileIndex base, Skip skip, String table, long start, Visit visit) {
        long[] all = {0, 0};
        long[] opened = {0, 0};
        for (Iterator each = base.allFiles().iterator(); each.hasNext();) {
            FileStatus file = (FileStatus) each.next();
            count(all, file.getLen());
            if (!skip.has(file.getPath().getName(), file.getLen())) {
                count(opened, file.getLen());
            }
        }
        String told = told(table, all, opened, start);
        visit.note(told);
        if (opened[0] == all[0]) {
            return relation;
        }
        return with(relation, files, new PrunedIndex(base, skip, opened[1], told));
    }

    private LogicalRelation delta(LogicalRelation relation, HadoopFsRelation files, FileIndex prepared,
            Skip skip, String table, long start, Visit visit) throws Exception {
        Object scan = call(prepared, "preparedScan");
        long[] listed = {0, 0};
        long[] opened = {0, 0};
        Method path = null;
        Method size = null;
        for (Iterator each = ((Seq) call(scan, "files")).iterator(); each.hasNext();) {
            Object file = each.next();
            if (path == null) {
                path = file.getClass().getMethod("path", new Class[0]);
                size = file.getClass().getMethod("size", new Class[0]);
            }
            long bytes = ((Long) size.invoke(file, new Object[0])).longValue();
            count(listed, bytes);
            if (!skip.has((String) path.invoke(file, new Object[0]), bytes)) {
                count(opened, bytes);
            }
        }
        Option totalFiles = (Option) call(call(scan, "total"), "files");
        Option totalBytes = (Option) call(call(scan, "total"), "bytesCompressed");
        long[] all = {
            totalFiles.isDefined() ? ((Long) totalFiles.get()).longValue() : listed[0],
            totalBytes.isDefined() ? ((Long) totalBytes.get()).longValue() : listed[1]
        };
        String told = told(table, all, opened, start);
        visit.note(told);
        if (opened[0] == listed[0]) {
            return relation;
        }
        Class ours = Class.forName(getClass().getName() + "$PrunedDelta", true, getClass().getClassLoader());
        Class[] types = {FileIndex.class, Skip.class, Long.TYPE, String.class};
        Object[] arguments = {prepared, skip, Long.valueOf(opened[1]), told};
        return with(relation, files, (FileIndex) ours.getMethod("of", types).invoke(null, arguments));
    }

    private static LogicalRelation with(LogicalRelation relation, HadoopFsRelation files, FileIndex location) {
        HadoopFsRelation fewer = files.copy(location, files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
            files.fileFormat(), files.options(), files.sparkSession());
        LogicalRelation found = relation.copy(fewer, relation.copy$default$2(), relation.copy$default$3(),
            relation.copy$default$4(), relation.copy$default$5());
        found.copyTagsFrom(relation);
        return found;
    }

    private static void count(long[] files, long bytes) {
        files[0]++;
        files[1] += bytes;
    }

    private static String told(String table, long[] all, long[] opened, long start) {
        StringBuilder out = new StringBuilder("{\"table\":");
        quote(table, out);
        out.append(",\"files\":").append(all[0]).append(",\"files_opened\":").append(opened[0]);
        out.append(",\"bytes\":").append(all[1]).append(",\"bytes_opened\":").append(opened[1]);
        out.append(",\"seconds\":").append((System.nanoTime() - start) / 1e9).append("}");
        return out.toString();
    }

    /** As `settings` in spark/session.py. */
    private static String settings() {
        SQLConf conf = SQLConf.get();
        Map found = new LinkedHashMap();
        Map set = CollectionConverters.asJava(conf.getAllConfs());
        for (java.util.Iterator each = set.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            if (((String) entry.getKey()).startsWith("spark.sql.legacy.")) {
                found.put(entry.getKey(), entry.getValue());
            }
        }
        for (int i = 0; i < MEANING.length; i++) {
            found.put(MEANING[i], conf.getConfString(MEANING[i]));
        }
        StringBuilder out = new StringBuilder("{");
        for (java.util.Iterator each = found.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            quote((String) entry.getKey(), out);
            out.append(":");
            quote((String) entry.getValue(), out);
            out.append(each.hasNext() ? "," : "");
        }
        return out.append("}").toString();
    }

    // --- Delta is reached by names only: it may not be there ---

    static Object call(Object of, String name) throws Exception {
        return of.getClass().getMethod(name, new Class[0]).invoke(of, new Object[0]);
    }

    static void quote(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 32 || c > 126) {
                out.append("\\u");
                String code = Integer.toHexString(c);
                for (int n = code.length(); n < 4; n++) {
                    out.append('0');
                }
                out.append(code);
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    /** Finds relations right below a filter, and those without one. */
    public static class Visit extends AbstractPartialFunction {
        private final Pruning rule;
        private final List done = new ArrayList();
        final List scans = new ArrayList();
        boolean sawFiles;

        Visit(Pruning rule) {
            this.rule = rule;
        }

        void note(String told) {
            sawFiles = true;
            scans.add(told);
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof LogicalRelation
                || (node instanceof Filter && ((Filter) node).child() instanceof LogicalRelation);
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            for (int i = 0; i < done.size(); i++) {
                if (done.get(i) == node) {
                    return node;
                }
            }
            Filter filter = node instanceof Filter ? (Filter) node : null;
            LogicalRelation relation = (LogicalRelation) (filter == null ? node : filter.child());
            LogicalRelation found = relation;
            try {
                found = rule.pruned(relation, filter == null ? null : filter.condition(), this);
            } catch (Exception error) {
                rule.trouble = error.toString();
            }
            done.add(found);
            return found == relation ? node : filter == null ? (Object) found : new Filter(filter.condition(), found);
        }
    }

    /** A condition as JSON; what Python could take for something else is written as unknown. */
    public static class Condition {
        private final StringBuilder out;

        Condition(StringBuilder out) {
            this.out = out;
        }

        void write(Expression e) {
            if (e == null) {
                out.append("null");
                return;
            }
            int before = out.length();
            if (!plain(e)) {
                out.setLength(before);
                if (!asText(e)) {
                    out.setLength(before);
                    out.append("[\"?\"]");
                }
            }
        }

        /** Connectives, and columns against literals of their own type. */
        private boolean plain(Expression e) {
            if (e instanceof And || e instanceof Or || e instanceof Not) {
                out.append(e instanceof And ? "[\"and\"" : e instanceof Or ? "[\"or\"" : "[\"not\"");
                for (Iterator each = ((TreeNode) e).children().iterator(); each.hasNext();) {
                    out.append(",");
                    write((Expression) each.next());
                }
                out.append("]");
                return true;
            }
            if (e instanceof IsNull || e instanceof IsNotNull) {
                Expression child = (Expression) ((TreeNode) e).children().head();
                out.append(e instanceof IsNull ? "[\"null\"," : "[\"not null\",");
                return column(child) && close();
            }
            if (e instanceof In) {
                Expression value = ((In) e).value();
                out.append("[\"in\",");
                if (!column(value)) {
                    return false;
                }
                for (Iterator each = ((In) e).list().iterator(); each.hasNext();) {
                    Expression one = (Expression) each.next();
                    out.append(",");
                    if (!(one instanceof Literal) || !one.dataType().equals(value.dataType())
                            || !value(((Literal) one).value(), one.dataType())) {
                        return false;
                    }
                }
                return close();
            }
            if (e instanceof InSet) {
                Expression value = (Expression) ((TreeNode) e).children().head();
                out.append("[\"in\",");
                if (!column(value)) {
                    return false;
                }
                for (Iterator each = ((InSet) e).hset().iterator(); each.hasNext();) {
                    out.append(",");
                    if (!value(each.next(), value.dataType())) {
                        return false;
                    }
                }
                return close();
            }
            if (e instanceof BinaryComparison || e instanceof StartsWith || e instanceof EndsWith
                    || e instanceof Contains || (e instanceof Like && ((Like) e).escapeChar() == '\\')) {
                Expression left = (Expression) ((TreeNode) e).children().apply(0);
                Expression right = (Expression) ((TreeNode) e).children().apply(1);
                String word = word(e);
                if (word == null || !left.dataType().equals(right.dataType())) {
                    return false;
                }
                out.append("[\"").append(word).append("\",");
                return side(left) && comma() && side(right) && close();
            }
            if (e instanceof Literal && e.dataType() instanceof BooleanType) {
                out.append("[\"const\",").append(((Literal) e).value()).append("]");
                return true;
            }
            if (e.dataType() instanceof BooleanType && (e instanceof AttributeReference || e instanceof GetStructField)) {
                out.append("[\"is\",");
                return column(e) && close();
            }
            return false;
        }

        private static String word(Expression e) {
            return e instanceof EqualTo ? "=" : e instanceof EqualNullSafe ? "<=>" : e instanceof LessThan ? "<"
                : e instanceof LessThanOrEqual ? "<=" : e instanceof GreaterThan ? ">"
                : e instanceof GreaterThanOrEqual ? ">=" : e instanceof StartsWith ? "starts"
                : e instanceof EndsWith ? "ends" : e instanceof Contains ? "contains" : e instanceof Like ? "like"
                : null;
        }

        private boolean close() {
            out.append("]");
            return true;
        }

        private boolean comma() {
            out.append(",");
            return true;
        }

        private boolean side(Expression e) {
            return e instanceof Literal ? value(((Literal) e).value(), e.dataType()) : column(e);
        }

        /** {"col": [names], "type": "int"}: the whole path of a data column. */
        private boolean column(Expression e) {
            List path = new ArrayList();
            Expression at = e;
            while (at instanceof GetStructField) {
                GetStructField field = (GetStructField) at;
                path.add(0, field.childSchema().fields()[field.ordinal()].name());
                at = field.child();
            }
            if (!(at instanceof AttributeReference) || !isData((AttributeReference) at)) {
                return false;
            }
            path.add(0, ((AttributeReference) at).name());
            out.append("{\"col\":[");
            for (int i = 0; i < path.size(); i++) {
                out.append(i > 0 ? "," : "");
                quote((String) path.get(i), out);
            }
            out.append("],\"type\":");
            quote(e.dataType().catalogString(), out);
            out.append("}");
            return true;
        }

        private static boolean isData(AttributeReference column) {
            return !column.metadata().contains("__metadata_col");
        }

        /** {"lit": "text", "type": "int"}: Spark's own form of the value, which no session changes. */
        private boolean value(Object value, DataType type) {
            String text;
            if (value == null) {
                return false;
            } else if (value instanceof UTF8String) {
                text = value.toString();
                if (!UTF8String.fromString(text).equals(value) || !type.catalogString().equals("string")) {
                    return false; // no valid text, or compared in another way than byte by byte
                }
            } else if (value instanceof Float) {
                text = Double.toString(((Float) value).doubleValue());
            } else if (value instanceof Decimal) {
                text = ((Decimal) value).toJavaBigDecimal().toPlainString();
            } else if (value instanceof byte[]) {
                byte[] bytes = (byte[]) value;
                StringBuilder hex = new StringBuilder();
                for (int i = 0; i < bytes.length; i++) {
                    hex.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
                }
                text = hex.toString();
            } else if (value instanceof Number || value instanceof Boolean) {
                text = value.toString();
            } else {
                return false;
            }
            out.append("{\"lit\":");
            quote(text, out);
            out.append(",\"type\":");
            quote(type.catalogString(), out);
            out.append("}");
            return true;
        }

        /** ["sql", "month(day) = 3", columns]: the same words mean the same only if all of Spark's making is usual. */
        private boolean asText(Expression e) {
            List columns = new ArrayList();
            if (!isUsual(e, columns)) {
                return false;
            }
            out.append("[\"sql\",");
            quote(((Expression) e.transform(new Unqualified())).sql(), out);
            for (int i = 0; i < columns.size(); i++) {
                out.append(",");
                if (!column((Expression) columns.get(i))) {
                    return false;
                }
            }
            return close();
        }

        private static boolean isUsual(Expression e, List columns) {
            String name = e.getClass().getName();
            String home = "org.apache.spark.sql.catalyst.expressions.";
            if (!name.startsWith(home) || name.indexOf('.', home.length()) >= 0 || e instanceof UserDefinedExpression
                    || e instanceof PlanExpression || !e.deterministic() || !inMode(e)) {
                return false;
            }
            if (e.dataType() instanceof StringType && !e.dataType().catalogString().equals("string")) {
                return false;
            }
            if (e instanceof Literal && e.dataType().catalogString().startsWith("timestamp")) {
                return false; // its text is in the session's zone, where an hour may come twice
            }
            if (e instanceof AttributeReference) {
                columns.add(e);
            }
            for (Iterator each = ((TreeNode) e).children().iterator(); each.hasNext();) {
                if (!isUsual((Expression) each.next(), columns)) {
                    return false;
                }
            }
            return true;
        }

        /** A view's expressions keep the settings under which the view was made. */
        private static boolean inMode(Expression e) {
            SQLConf conf = SQLConf.get();
            if (e instanceof TimeZoneAwareExpression) {
                Option zone = ((TimeZoneAwareExpression) e).timeZoneId();
                if (zone.isDefined() && !zone.get().equals(conf.sessionLocalTimeZone())) {
                    return false;
                }
            }
            boolean ansi = conf.ansiEnabled();
            Object mode = asked(e, "evalMode");
            Object fails = asked(e, "failOnError");
            return (mode == null || mode.toString().equals(ansi ? "ANSI" : "LEGACY"))
                && (fails == null || fails.equals(Boolean.valueOf(ansi)));
        }

        private static Object asked(Expression e, String name) {
            try {
                return call(e, name);
            } catch (Exception none) {
                return null;
            }
        }
    }

    /** Columns without the names of tables before them. */
    public static class Unqualified extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return node instanceof AttributeReference;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            return ((AttributeReference) node).withQualifier((Seq) scala.collection.immutable.Nil$.MODULE$);
        }
    }

    /** A list of files that this rule has made. */
    public interface Decided {
        String told();
    }

    /** Files that cannot matter: those of a list with a 0 at their place. All lie below one folder, so names do. */
    public static class Skip {
        private final Map places;
        private final long[] sizes;
        private final String bits;

        private Skip(Map places, long[] sizes, String bits) {
            this.places = places;
            this.sizes = sizes;
            this.bits = bits;
        }

        /** Nothing yet; each line is a size and a name. */
        static Skip of(String[] lines) {
            Map places = new HashMap();
            long[] sizes = new long[lines.length];
            for (int i = 0; i < lines.length; i++) {
                int space = lines[i].indexOf(' ');
                places.put(lines[i].substring(space + 1), Integer.valueOf(i));
                sizes[i] = Long.parseLong(lines[i].substring(0, space));
            }
            return new Skip(places, sizes, "");
        }

        /** Nothing if there are more or fewer bits than files: the table changed between the two questions. */
        Skip where(String bits) {
            return new Skip(places, sizes, bits.length() == sizes.length ? bits : "");
        }

        /** A file of another size is another file. */
        boolean has(String name, long bytes) {
            Object found = bits.length() == 0 ? null : places.get(name);
            int place = found == null ? -1 : ((Integer) found).intValue();
            return place >= 0 && sizes[place] == bytes && bits.charAt(place) == '0';
        }

        public boolean equals(Object other) {
            return other instanceof Skip && ((Skip) other).bits.equals(bits) && ((Skip) other).places.equals(places)
                && Arrays.equals(((Skip) other).sizes, sizes);
        }

        public int hashCode() {
            return bits.hashCode();
        }

        public String toString() {
            int files = 0;
            for (int i = 0; i < bits.length(); i++) {
                files += '1' - bits.charAt(i);
            }
            return files + " files";
        }
    }

    /** Spark's list of files without some; equal to another if it hides the same, so that scans are shared. */
    public static class PrunedIndex implements FileIndex, Decided {
        private final FileIndex base;
        private final Skip skip;
        private final long bytes;
        private final String told;
        private final int hash;

        PrunedIndex(FileIndex base, Skip skip, long bytes, String told) {
            this.base = base;
            this.skip = skip;
            this.bytes = bytes;
            this.told = told;
            this.hash = 31 * base.hashCode() + skip.hashCode();
        }

        public String told() {
            return told;
        }

        public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
            List found = new ArrayList();
            for (Iterator each = base.listFiles(partitionFilters, dataFilters).iterator(); each.hasNext();) {
                PartitionDirectory directory = (PartitionDirectory) each.next();
                List kept = new ArrayList();
                for (Iterator files = directory.files().iterator(); files.hasNext();) {
                    FileStatusWithMetadata file = (FileStatusWithMetadata) files.next();
                    if (!skip.has(file.getPath().getName(), file.getLen())) {
                        kept.add(file);
                    }
                }
                found.add(new PartitionDirectory(directory.values(), CollectionConverters.asScala(kept).toSeq()));
            }
            return CollectionConverters.asScala(found).toSeq();
        }

        public String[] inputFiles() {
            List found = new ArrayList();
            Seq none = (Seq) scala.collection.immutable.Nil$.MODULE$;
            for (Iterator each = listFiles(none, none).iterator(); each.hasNext();) {
                for (Iterator files = ((PartitionDirectory) each.next()).files().iterator(); files.hasNext();) {
                    found.add(SparkPath.fromPath(((FileStatusWithMetadata) files.next()).getPath()).urlEncoded());
                }
            }
            return (String[]) found.toArray(new String[0]);
        }

        public Seq rootPaths() {
            return base.rootPaths();
        }

        public void refresh() {
            base.refresh();
        }

        public long sizeInBytes() {
            return bytes;
        }

        public StructType partitionSchema() {
            return base.partitionSchema();
        }

        public Option metadataOpsTimeNs() {
            return base.metadataOpsTimeNs();
        }

        public String toString() {
            return "Hedgerow(" + base + " without " + skip + ")";
        }

        public boolean equals(Object other) {
            return other instanceof PrunedIndex && ((PrunedIndex) other).base.equals(base)
                && ((PrunedIndex) other).skip.equals(skip);
        }

        public int hashCode() {
            return hash;
        }
    }

    // --- Delta begins: left out where there is no Delta, with the imports above ---

    /**
     * Delta's list without some. Delta goes on to choose: by partitions, and anew if other filters reach the scan, as
     * they do with deletion vectors. Its comparison of lists looks at the scan, so that is made shorter too.
     */
    public static class PrunedDelta extends PreparedDeltaFileIndex implements Decided {
        private final Skip skip;
        private final String told;

        public static FileIndex of(FileIndex prepared, Skip skip, long bytes, String told) {
            return new PrunedDelta((PreparedDeltaFileIndex) prepared, skip, bytes, told);
        }

        PrunedDelta(PreparedDeltaFileIndex base, Skip skip, long bytes, String told) {
            super(base.spark(), base.deltaLog(), base.path(), base.catalogTableOpt(),
                shorter(base.preparedScan(), skip, bytes), base.versionScanned());
            this.skip = skip;
            this.told = told;
        }

        private static DeltaScan shorter(DeltaScan scan, Skip skip, long bytes) {
            Seq files = kept(scan.files(), skip);
            Option none = Option.empty();
            DataSize scanned = new DataSize(
                Option.apply(Long.valueOf(bytes)), none, Option.apply(Long.valueOf(files.size())), none);
            return new DeltaScan(scan.version(), files, scan.total(), scan.partition(), scanned,
                scan.scannedSnapshot(), scan.partitionFilters(), scan.dataFilters(), scan.partitionLikeDataFilters(),
                scan.rewrittenPartitionLikeDataFilters(), scan.unusedFilters(), scan.scanDurationMs(),
                scan.dataSkippingType());
        }

        public String told() {
            return told;
        }

        public Seq matchingFiles(Seq partitionFilters, Seq dataFilters) {
            return kept(super.matchingFiles(partitionFilters, dataFilters), skip);
        }

        private static Seq kept(Seq files, Skip skip) {
            List found = new ArrayList();
            for (Iterator each = files.iterator(); each.hasNext();) {
                AddFile file = (AddFile) each.next();
                if (!skip.has(file.path(), file.size())) {
                    found.add(file);
                }
            }
            return CollectionConverters.asScala(found).toSeq();
        }

        public boolean equals(Object other) {
            return other instanceof PrunedDelta && super.equals(other) && ((PrunedDelta) other).skip.equals(skip);
        }

        public int hashCode() {
            return super.hashCode();
        }
    }

    // --- Delta ends ---
}

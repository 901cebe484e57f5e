package hedgerow;

import jakarta.servlet.http.HttpServletRequest;
import java.lang.reflect.Method;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils$;
import org.apache.spark.ui.WebUIPage;
import org.apache.spark.ui.WebUITab;
import org.apache.spark.util.Utils;
import scala.Function0;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.xml.Node;
import scala.xml.XML$;

/** A tab of Spark's UI: the files that each scan of the newest queries opened, by which means, and why not fewer. */
final class UiTab extends SparkUITab {
    private static final int MOST = 100; // queries
    private static final String HEADS = "<tr><th>Query</th><th>Submitted</th><th>Table</th><th>Files opened</th>"
        + "<th>Size opened</th><th>Chosen by</th><th>Why not fewer</th><th>Chosen in</th></tr>";
    private final Deque<Query> queries = new ArrayDeque<>(); // the newest first

    private UiTab(SparkUI ui) {
        super(ui, "hedgerow");
        attachPage(new Page());
    }

    /** A query as it was planned. `execution`: Spark's number for it; null if it had none yet, as in `explain()`. */
    private record Query(long time, String execution, List<QueryPlan.Decision> decisions) {}

    /** Adds a query that is planned on this thread; the first one of an application brings the tab. */
    static void note(List<QueryPlan.Decision> decisions) {
        Option<SparkSession> session = SparkSession.getActiveSession();
        if (session.isDefined() && session.get().sparkContext().ui().isDefined()) {
            SparkContext context = session.get().sparkContext();
            of(context.ui().get()).add(new Query(
                System.currentTimeMillis(), context.getLocalProperty("spark.sql.execution.id"), decisions));
        }
    }

    private static synchronized UiTab of(SparkUI ui) {
        for (WebUITab tab : Scala.list(ui.getTabs())) {
            if (tab instanceof UiTab ours) {
                return ours;
            }
        }
        UiTab tab = new UiTab(ui);
        ui.attachTab(tab);
        return tab;
    }

    private synchronized void add(Query query) {
        queries.addFirst(query);
        if (queries.size() > MOST) {
            queries.removeLast();
        }
    }

    private synchronized List<Query> newest() {
        return List.copyOf(queries);
    }

    private final class Page extends WebUIPage {
        Page() {
            super("");
        }

        @Override
        public Seq<Node> render(HttpServletRequest request) {
            StringBuilder html = new StringBuilder("<div><p>The files that the newest queries opened of tables that "
                + "Hedgerow manages. Each scan of a query has a line.</p>"
                + "<table class=\"table table-bordered table-striped table-sm\"><thead>" + HEADS + "</thead><tbody>");
            for (Query query : newest()) {
                for (QueryPlan.Decision decision : query.decisions) {
                    html.append(row(query, decision.report(), request));
                }
            }
            Node content = XML$.MODULE$.loadString(html.append("</tbody></table></div>").toString());
            return page(request, Scala.seq(List.of(content)));
        }

        private String row(Query query, Wire.ScanReport scan, HttpServletRequest request) {
            String number = query.execution == null ? "" : "<a href=\"" + text(UIUtils$.MODULE$.prependBaseUri(
                request, basePath(), "/SQL/execution/?id=" + query.execution)) + "\">" + text(query.execution) + "</a>";
            boolean byKeys = scan.filesRead() != null;
            long files = byKeys ? scan.filesRead() : scan.filesOpened();
            long bytes = byKeys ? scan.bytesRead() : scan.bytesOpened();
            String means = !byKeys ? scan.means() : String.format(Locale.ROOT, "%s, then %,d keys of joins in %.0f ms",
                scan.means(), scan.keys(), 1000 * scan.keySeconds());
            String reason = scan.reason() != null ? scan.reason()
                : files == scan.files() ? "the query may need rows of each file" : "";
            Stream<String> cells = Stream.of(
                text(UIUtils$.MODULE$.formatDate(query.time)),
                text(scan.table()),
                String.format(Locale.ROOT, "%,d of %,d", files, scan.files()),
                Utils.bytesToString(bytes) + " of " + Utils.bytesToString(scan.bytes()),
                text(files < scan.files() ? means : ""),
                text(reason),
                String.format(Locale.ROOT, "%.1f ms", 1000 * scan.seconds()));
            return "<tr><td>" + number + "</td>"
                + String.join("", cells.map(cell -> "<td>" + cell + "</td>").toList()) + "</tr>";
        }

        /** Returns the content below Spark's own head. The function for it has other parameters in each Spark. */
        private Seq<Node> page(HttpServletRequest request, Seq<Node> content) {
            Function0<Seq<Node>> body = new AbstractFunction0<>() {
                @Override
                public Seq<Node> apply() {
                    return content;
                }
            };
            try {
                for (Method method : UIUtils$.class.getMethods()) {
                    if (method.getName().equals("headerSparkPage")) {
                        Object[] values = Stream.of(method.getParameterTypes()).map(type ->
                            type == HttpServletRequest.class ? request
                                : type == String.class ? "Hedgerow"
                                : type == Function0.class ? body
                                : type == SparkUITab.class ? UiTab.this
                                : type == Option.class ? Option.empty() : (Object) false).toArray();
                        @SuppressWarnings("unchecked") // it returns nothing else
                        Seq<Node> whole = (Seq<Node>) method.invoke(UIUtils$.MODULE$, values);
                        return whole;
                    }
                }
            } catch (ReflectiveOperationException | IllegalArgumentException error) {
                PruningRule.LOG.info("Hedgerow shows its page without Spark's head: " + error);
            }
            return content;
        }

        /** Writes a text as XML. */
        private static String text(String value) {
            return value.replaceAll("[^\\t\\n\\x20-\\uD7FF\\uE000-\\uFFFD\\x{10000}-\\x{10FFFF}]", " ").replace("&", "&amp;").replace("<", "&lt;")
                .replace(">", "&gt;").replace("\"", "&quot;");
        }
    }
}

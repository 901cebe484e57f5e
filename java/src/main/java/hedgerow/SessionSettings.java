package hedgerow;

import java.time.ZoneId;
import java.time.zone.ZoneRulesProvider;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/** Remembers which settings and reader options are harmless, and reads a session's other settings. */
final class SessionSettings {
    private final Python python;
    private final Map<String, Boolean> settings = new ConcurrentHashMap<>(); // name -> harmless
    private final Map<String, Boolean> options = new ConcurrentHashMap<>();

    SessionSettings(Python python) {
        this.python = python;
    }

    /** Returns the settings that change what a query means or reads, the versions of declared functions among them. */
    Map<String, String> relevant(SQLConf conf, Map<String, StableFunctions.Declared> stable) {
        Map<String, String> set = Scala.map(conf.getAllConfs());
        judge(set.keySet(), Set.of());
        return changed(conf, set, name -> !settings.get(name), stable, python.allowed());
    }

    /** Returns a reader option that may change what is read; null if there is none. */
    String unusualOption(Set<String> names) {
        judge(Set.of(), names);
        return names.stream().filter(name -> !options.get(name)).findFirst().orElse(null);
    }

    /** Returns why no file of a scan may be skipped, whatever the condition; null if some may. */
    String unfit(Scan scan) {
        String option = unusualOption(ScannedFiles.options(scan.relation()));
        return option == null
            ? scan.files().unfit(scan.relation()) : "the reader option " + option + " may change what is read";
    }

    private void judge(Set<String> settingNames, Set<String> optionNames) {
        if (settings.keySet().containsAll(settingNames) && options.keySet().containsAll(optionNames)) {
            return;
        }
        Set<String> newSettings = unknown(settingNames, settings);
        Set<String> newOptions = unknown(optionNames, options);
        Wire.Answer answer = python.ask(new Wire.Judge(newSettings, newOptions));
        if (answer instanceof Wire.Refused refused) {
            throw new IllegalStateException(refused.reason());
        }
        Wire.Harmless harmless = (Wire.Harmless) answer;
        newSettings.forEach(name -> settings.put(name, harmless.settings().contains(name)));
        newOptions.forEach(name -> options.put(name, harmless.options().contains(name)));
    }

    private static Set<String> unknown(Set<String> names, Map<String, Boolean> known) {
        return names.stream().filter(name -> !known.containsKey(name)).collect(Collectors.toCollection(TreeSet::new));
    }

    /** Returns all settings of the session that are not at their defaults, and some that always count. */
    static Map<String, String> changed(SparkSession session, Allowlist allowed) {
        SQLConf conf = session.sessionState().conf();
        return changed(conf, Scala.map(conf.getAllConfs()), name -> true, StableFunctions.of(session), allowed);
    }

    private static Map<String, String> changed(
            SQLConf conf, Map<String, String> set, Predicate<String> counts,
            Map<String, StableFunctions.Declared> stable, Allowlist allowed) {
        Map<String, String> found = new TreeMap<>();
        set.forEach((name, value) -> {
            if (counts.test(name) && !value.isEmpty() && !name.startsWith(StableFunctions.PREFIX)) {
                var registered = SQLConf$.MODULE$.getConfigEntry(name);
                if (registered == null || !registered.defaultValueString().equals(value)) {
                    found.put(name, value);
                }
            }
        });
        stable.forEach((name, declared) -> found.put(StableFunctions.PREFIX + name, declared.version()));
        for (String name : allowed.lists().alwaysStored()) {
            found.put(name, conf.getConfString(name));
        }
        String[] version = org.apache.spark.package$.MODULE$.SPARK_VERSION().split("[.]");
        found.put("spark.version", version[0] + "." + version[1]);
        // Java's own part: version and language for letters, and the rules of zones whose clocks change.
        boolean isFixed = ZoneId.of(conf.sessionLocalTimeZone(), ZoneId.SHORT_IDS).getRules().isFixedOffset();
        String zones = isFixed ? "" : " " + ZoneRulesProvider.getVersions("Europe/Berlin").lastEntry().getKey();
        found.put("java.version",
            System.getProperty("java.specification.version") + " " + Locale.getDefault().getLanguage() + zones);
        return found;
    }

    static long number(String setting, long otherwise) {
        return Long.parseLong(SQLConf.get().getConfString(setting, Long.toString(otherwise)));
    }

    static double decimal(String setting, double otherwise) {
        return Double.parseDouble(SQLConf.get().getConfString(setting, Double.toString(otherwise)));
    }

    static boolean isOn(String setting) {
        return "true".equalsIgnoreCase(SQLConf.get().getConfString(setting, "true"));
    }
}

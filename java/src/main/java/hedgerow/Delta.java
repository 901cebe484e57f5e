package hedgerow;

/** Tells whether Delta's classes are there, without touching one. */
final class Delta {
    static final boolean IS_THERE = isIn(Delta.class.getClassLoader());

    private Delta() {}

    static boolean isIn(ClassLoader loader) {
        return loader.getResource("org/apache/spark/sql/delta/stats/PreparedDeltaFileIndex.class") != null;
    }
}

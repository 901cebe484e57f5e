package hedgerow;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;

/**
 * Parquet files as Spark lists them.
 *
 * @param statuses the list, made once, because it takes a while for many files
 */
record ParquetFiles(PartitioningAwareFileIndex location, List<FileStatus> statuses) implements ScannedFiles {
    ParquetFiles(PartitioningAwareFileIndex location) {
        this(location, Scala.list(location.allFiles()));
    }

    @Override
    public String root() {
        List<Path> roots = Scala.list(location.rootPaths());
        if (roots.size() == 1) {
            boolean isFile = !statuses.isEmpty() && statuses.get(0).getPath().equals(roots.get(0));
            return (isFile ? roots.get(0).getParent() : roots.get(0)).toString();
        }
        Set<Path> parents = roots.stream().map(Path::getParent).collect(Collectors.toCollection(HashSet::new));
        return parents.size() != 1 || parents.contains(null) ? null : parents.iterator().next().toString();
    }

    @Override
    public String unfit(LogicalRelation relation) {
        HadoopFsRelation files = (HadoopFsRelation) relation.relation();
        if (!files.partitionSchema().isEmpty() || files.bucketSpec().isDefined()) {
            return "the query reads the directory as a partitioned or bucketed table";
        }
        return ScannedFiles.hasFieldIds(relation) ? "columns may be found by Parquet's field ids" : null;
    }

    @Override
    public Stream<Entry> files() {
        return statuses.stream().map(file -> new Entry(file.getPath().getName(), file.getLen(), 0));
    }

    @Override
    public Count total(Count listed) {
        return listed;
    }

    @Override
    public boolean isWhole(FileChoice index) {
        Set<Path> paths = new HashSet<>(); // a path may be given twice, and then its rows are read twice
        boolean isKnown = statuses.stream()
            .allMatch(file -> index.knows(file.getPath().getName(), file.getLen()) && paths.add(file.getPath()));
        return isKnown && paths.size() == index.visibleFiles();
    }

    @Override
    public String deltaSchema() {
        return null;
    }

    @Override
    public FileIndex without(FileChoice choice, Wire.ScanReport report) {
        return new FileLists.Pruned(location, choice, report);
    }

    @Override
    public boolean canBeNumbered() {
        return true;
    }

    @Override
    public FileIndex numbered(FileIndex listed, FileChoice choice, FileChoice index, Wire.ScanReport report) {
        return new FileLists.Numbered(listed, index, report);
    }

    @Override
    public String version(LogicalRelation relation) {
        Stream<String> files = statuses.stream()
            .map(file -> file.getPath() + "\n" + file.getLen() + "\n" + file.getModificationTime());
        // The catalog may give a value where a file lacks the column.
        Stream<String> defaults = Arrays.stream(relation.schema().fields())
            .filter(field -> field.metadata().json().contains("DEFAULT"))
            .map(field -> field.name() + "\n" + field.metadata().json());
        String listed = Stream.concat(files, defaults).sorted().collect(Collectors.joining("\n"));
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(listed.getBytes(StandardCharsets.UTF_8));
            return "files " + new BigInteger(1, digest).toString(16);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}

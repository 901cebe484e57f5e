package hedgerow;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.FileSourceOptions;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.ListingPartition;
import org.apache.spark.sql.execution.PartitionedFileUtil;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.collection.BitSet;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;

/**
 * Spark's scan of files, divided at the borders of row groups: what is skipped is in no task.
 *
 * <pre>
 *     row groups      | 0 | 1 | 2 | 3 | 4 | 5 |       read: 1, 2, 5
 *     ranges of bytes     |-------|       |---|       in one task, or in several
 * </pre>
 *
 * A task reads the row groups whose middle lies in its range. Executors get Spark's own scan in the place of this one.
 */
public final class RowGroupScan extends FileSourceScanExec {
    private static final long serialVersionUID = 1;

    private transient RDD<InternalRow> rows;

    RowGroupScan(FileSourceScanExec scan) {
        this(scan.relation(), scan.stream(), scan.output(), scan.requiredSchema(), scan.partitionFilters(),
            scan.optionalBucketSet(), scan.optionalNumCoalescedBuckets(), scan.dataFilters(), scan.tableIdentifier(),
            scan.disableBucketedScan());
        copyTagsFrom(scan);
    }

    /** Spark copies nodes of a plan by this. */
    public RowGroupScan(HadoopFsRelation relation, Option<SparkDataStream> stream, Seq<Attribute> output,
            StructType requiredSchema, Seq<Expression> partitionFilters, Option<BitSet> optionalBucketSet,
            Option<Object> optionalNumCoalescedBuckets, Seq<Expression> dataFilters,
            Option<TableIdentifier> tableIdentifier, boolean disableBucketedScan) {
        super(relation, stream, output, requiredSchema, partitionFilters, optionalBucketSet,
            optionalNumCoalescedBuckets, dataFilters, tableIdentifier, disableBucketedScan);
    }

    /** Public, for the plan above is written by Java's own means. */
    public Object writeReplace() {
        return new FileSourceScanExec(relation(), stream(), output(), requiredSchema(), partitionFilters(),
            optionalBucketSet(), optionalNumCoalescedBuckets(), dataFilters(), tableIdentifier(),
            disableBucketedScan());
    }

    // Spark would leave the scan in whose place this one is where it is, if both were equal.

    @Override
    public boolean canEqual(Object other) {
        return other instanceof RowGroupScan;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof RowGroupScan && super.equals(other);
    }

    @Override
    public int hashCode() {
        return super.hashCode();
    }

    @Override
    public RDD<InternalRow> inputRDD() {
        synchronized (this) {
            if (rows == null) {
                try {
                    rows = read();
                } catch (LinkageError error) { // another release of Spark
                    PruningRule.LOG.info("Hedgerow skips no row groups: " + error);
                    rows = super.inputRDD();
                }
            }
            return rows;
        }
    }

    private RDD<InternalRow> read() {
        SparkSession session = (SparkSession) relation().sparkSession();
        @SuppressWarnings("unchecked") // Java does not see the type that Scala gives
        Map<String, String> options = (Map<String, String>) relation().options().updated(
            FileFormat.OPTION_RETURNING_BATCH(), String.valueOf(supportsColumnar()));
        Configuration settings = session.sessionState().newHadoopConfWithOptions(relation().options());
        Function1<PartitionedFile, Iterator<InternalRow>> reader = relation().fileFormat()
            .buildReaderWithPartitionValues(session, relation().dataSchema(), relation().partitionSchema(),
                requiredSchema(), pushedDownFilters(), options, settings);
        StructType columns = new StructType(Stream.of(requiredSchema(), relation().partitionSchema())
            .flatMap(schema -> Arrays.stream(schema.fields())).toArray(StructField[]::new));
        RDD<InternalRow> found = new FileScanRDD(session, reader, tasks(session), columns,
            fileConstantMetadataColumns(), relation().fileFormat().fileConstantMetadataExtractors(),
            new FileSourceOptions(relation().options()));
        sendDriverMetrics();
        return found;
    }

    /** A file of a partition, with the row groups that are read, as `FileChoice.groups`. */
    private record Piece(FileStatusWithMetadata file, InternalRow values, long[] groups, boolean joinsGroups) {
        long bytes() {
            return groups == null ? file.getLen() : FileChoice.total(groups);
        }

        /** Returns the ranges to read: neighbouring row groups together, as far as a task takes so many bytes. */
        Stream<PartitionedFile> ranges(long most, boolean canDivide) {
            Path path = file.getPath();
            if (groups == null || !canDivide) {
                return Scala.list(PartitionedFileUtil.splitFiles(file, path, canDivide, most, values)).stream();
            }
            List<PartitionedFile> ranges = new ArrayList<>();
            int end;
            for (int begin = 0; begin < groups.length; begin = end) {
                end = begin + 2;
                while (joinsGroups && end < groups.length && groups[end] == groups[end - 1]
                        && groups[end + 1] - groups[begin] <= most) {
                    end += 2;
                }
                ranges.add(PartitionedFileUtil.getPartitionedFile(
                    file, path, values, groups[begin], groups[end - 1] - groups[begin]));
            }
            return ranges.stream();
        }
    }

    private Seq<FilePartition> tasks(SparkSession session) {
        List<Piece> pieces = pieces();
        long opening = session.sessionState().conf().filesOpenCostInBytes();
        long total = pieces.stream().mapToLong(piece -> piece.bytes() + opening).sum();
        long most = FilePartition.maxSplitBytes(session, new AbstractFunction0<Object>() {
            @Override
            public Object apply() {
                return total;
            }
        });
        List<PartitionedFile> ranges = pieces.stream()
            .flatMap(piece -> piece.ranges(most, relation().fileFormat().isSplitable(
                session, relation().options(), piece.file.getPath())))
            .toList();
        return FilePartition.getFilePartitions(session, Scala.seq(ranges), most);
    }

    private List<Piece> pieces() {
        FileLists.Decided list = (FileLists.Decided) relation().location();
        List<Piece> pieces = new ArrayList<>();
        Iterator<ListingPartition> partitions = dynamicallySelectedPartitions().filePartitionIterator();
        while (partitions.hasNext()) {
            ListingPartition partition = partitions.next();
            Iterator<FileStatusWithMetadata> files = partition.files();
            while (files.hasNext()) {
                FileStatusWithMetadata file = files.next();
                pieces.add(new Piece(file, partition.values(), list.groups(file), list.joinsGroups()));
            }
        }
        return pieces;
    }
}

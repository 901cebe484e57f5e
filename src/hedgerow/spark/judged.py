"""Lists Spark's expressions, settings and reader options by their effect on skipping; anything not listed is unknown.

The rule matches expressions of a query with those that were evaluated when the table was written. That is sound if
equal expression trees have equal values. So:

- an expression class is allowed only if its value depends on its arguments and on settings of kind 'meaning' alone;
- if a setting of kind 'meaning' differs from the stored one, stored expressions are not used, but plain comparisons of
  columns with literals still are;
- if a setting of kind 'reading', or one that is unknown, differs, no file is skipped;
- a setting that is on no list, and outside of the namespaces of Spark SQL, Hadoop's readers and other engines, is read
  by no scan and no expression: `spark/session_settings` takes it for harmless, unless unknown code is loaded;
- an extension or plugin on no list counts as a setting of kind 'meaning';
- if a reader option is not on the list of harmless ones, no file is skipped;
- if the plan has an expression that is not deterministic, or an operator that sees a task's rows together, no file is
  skipped.

`tests/spark/test_judged.py` walks Spark's registries. It fails if a name is neither here nor in its own list of refused
names, and if a name is stale. Nothing else in a plan is checked: a stored expression is a scalar over one table, and a
query's expression is compared after Spark resolved it. So settings of joins, aggregates, subqueries and name resolution
are harmless even where they change an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

from hedgerow.spark.extensions import ENGINES_OFF

Kind = Literal["harmless", "meaning", "reading", "unknown"]


def _names(text: str, prefix: str = "") -> frozenset[str]:
    """Return the names in a text without its comments, each with the prefix."""
    lines = (line.partition("# ")[0] for line in text.splitlines())
    return frozenset(prefix + name for line in lines for name in line.split())


# --- expressions of org.apache.spark.sql.catalyst.expressions ---------------------------------------

# Compare them as case classes, never by `canonicalized` or `semanticEquals`: those reorder sums, and a sum of
# doubles depends on its order.
EXPRESSIONS: frozenset[str] = _names("""
    # columns and constants; two literals also have to agree in the sign of zero, which Scala's == overlooks
    AttributeReference Literal
    # logic and comparison
    And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In InSet
    IsNull IsNotNull IsNaN NaNvl If CaseWhen Coalesce Greatest Least AtLeastNNonNulls
    # arithmetic; how it fails is an argument
    Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus Abs TryEval
    BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseCount BitwiseGet ShiftLeft ShiftRight ShiftRightUnsigned
    Ceil Floor RoundCeil RoundFloor Round BRound Rint Signum WidthBucket Factorial Conv Bin Hex Unhex
    CheckOverflow MakeDecimal UnscaledValue
    # mathematics
    Acos Acosh Asin Asinh Atan Atan2 Atanh Cbrt Cos Cosh Cot Csc EulerNumber Exp Expm1 Hypot Log Log10 Log1p Log2
    Logarithm Pi Pow Sec Sin Sinh Sqrt Tan Tanh ToDegrees ToRadians
    # casts; not of an array, map or struct to a string: see CHECKED_FURTHER
    Cast CastTimestampNTZToLong
    # marks of the optimizer, which change no value
    KnownNotNull KnownNullable KnownNotContainsNull
    # strings
    Ascii BitLength Chr Concat ConcatWs Contains Elt EndsWith FindInSet FormatNumber InitCap Length Levenshtein Lower
    Mask OctetLength Overlay Reverse SoundEx StartsWith StringInstr StringLPad StringLocate StringRPad StringRepeat
    StringReplace StringSpace StringSplit StringSplitSQL StringTranslate StringTrim StringTrimLeft StringTrimRight
    Substring SubstringIndex ToCharacter ToNumber TryToNumber UnBase64 Upper
    # patterns
    Like LikeAll LikeAny NotLikeAll NotLikeAny RLike RegExpExtract RegExpExtractAll RegExpInStr RegExpReplace
    # hashes
    Crc32 HiveHash Md5 Murmur3Hash Sha1 Sha2 XxHash64
    # dates
    AddMonths DateAdd DateAddInterval DateAddYMInterval DateDiff DateFromUnixDate DateSub DayName DayOfMonth DayOfWeek
    DayOfYear LastDay MakeDate Month MonthName NextDay Quarter SubtractDates TruncDate UnixDate WeekDay WeekOfYear Year
    YearOfWeek
    # timestamps; the zone is an argument
    ConvertTimezone FromUTCTimestamp Hour MakeTimestamp MicrosToTimestamp MillisToTimestamp Minute MonthsBetween
    PreciseTimestampConversion Second SecondWithFraction SecondsToTimestamp SubtractTimestamps TimestampAdd
    TimestampAddInterval TimestampAddYMInterval TimestampDiff ToUTCTimestamp TruncTimestamp UnixMicros UnixMillis
    UnixSeconds
    # by patterns of letters, which they read when they run: spark.sql.legacy.timeParserPolicy is not an argument
    DateFormatClass FromUnixTime GetTimestamp ToUnixTimestamp UnixTimestamp
    # intervals
    DivideDTInterval DivideInterval DivideYMInterval ExtractANSIIntervalDays ExtractANSIIntervalHours
    ExtractANSIIntervalMinutes ExtractANSIIntervalMonths ExtractANSIIntervalSeconds ExtractANSIIntervalYears
    ExtractIntervalDays ExtractIntervalHours ExtractIntervalMinutes ExtractIntervalMonths ExtractIntervalSeconds
    ExtractIntervalYears MakeDTInterval MakeInterval MakeYMInterval MultiplyDTInterval MultiplyInterval
    MultiplyYMInterval
    # fields, arrays and maps that are there
    GetStructField GetArrayStructFields GetArrayItem GetMapValue ElementAt Size Slice Sequence CreateArray
    CreateNamedStruct ArrayContains ArrayDistinct ArrayExcept ArrayInsert ArrayIntersect ArrayJoin ArrayMax ArrayMin
    ArrayPosition ArrayRemove ArrayRepeat ArrayUnion ArraysOverlap ArraysZip Flatten SortArray MapKeys MapValues
    MapEntries MapSort
    # functions over arrays and maps; their variables have ids of their own in every query
    LambdaFunction NamedLambdaVariable ArrayAggregate ArrayExists ArrayFilter ArrayForAll ArraySort ArrayTransform
    MapFilter TransformValues ZipWith
    # documents
    GetJsonObject
""")

# Trees of an allowed class that the rule refuses nevertheless.
CHECKED_FURTHER: Mapping[str, str] = MappingProxyType(
    {
        "Cast": "array, map or struct to string: spark.sql.legacy.castComplexTypesToString.enabled is no argument",
        "In": "of no values: spark.sql.legacy.nullInEmptyListBehavior is no argument",
        "InSet": "of no values, as In",
        "Literal": "equal in Scala, but one holds 0.0 where the other holds -0.0, at any depth",
    }
)

# No row makes these fail, under any setting: a file that is not read could not have made the query fail.
NEVER_FAIL: frozenset[str] = _names("""
    Alias AttributeReference Literal ToPrettyString GetStructField KnownNotNull KnownNullable KnownNotContainsNull
    And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In InSet
    IsNull IsNotNull IsNaN NaNvl If CaseWhen Coalesce Greatest Least AtLeastNNonNulls
    Contains EndsWith StartsWith Length Lower Upper InitCap Reverse Substring
    StringTrim StringTrimLeft StringTrimRight StringReplace StringTranslate
    DayOfMonth DayOfWeek DayOfYear Month Quarter WeekDay WeekOfYear Year YearOfWeek LastDay Hour Minute Second
    # with further checks: only wider numbers, texts and days; only patterns without an escape
    Cast Like
""")

# Spark replaces these before the rule runs; the rule sees and checks their replacements.
REPLACED_EXPRESSIONS: frozenset[str] = _names("""
    AesDecrypt AesEncrypt ArrayAppend ArrayBinarySearch ArrayCompact ArrayPrepend ArraySize AssertTrue Base64 Between
    BinaryPad BinaryPredicate BitmapBitPosition BitmapBucketNumber BitmapCount Collation DatetimeSub Decode Encode
    EqualNull Extract FromAvro FromProtobuf Get HoursOfTime ILike IsValidUTF8 JsonObjectKeys Left LengthOfJsonArray
    Luhncheck MakeTime MakeTimestampFromDateTime MakeTimestampNTZ MakeValidUTF8 MapContainsKey MinutesOfTime NullIf
    NullIfZero Nvl Nvl2 ParseToDate ParseToTimestamp ParseUrl Quote RegExpCount RegExpSubStr Right SchemaOfAvro
    SchemaOfCsv SchemaOfJson SchemaOfXml SecondsOfTime SecondsOfTimeWithFraction Sentences SparkVersion SplitPart
    StringDecode StringTrimBoth StructsToJson SubtractTimes TimeAddInterval TimeDiff TimeFromMicros TimeFromMillis
    TimeFromSeconds TimeToMicros TimeToMillis TimeToSeconds TimeTrunc ToAvro ToBinary ToJavaArray ToProtobuf ToTime
    TryAdd TryAesDecrypt TryDivide TryElementAt TryMakeInterval TryMakeTimestamp TryMakeTimestampFromDateTime TryMod
    TryMultiply TryParseUrl TryReflect TrySubtract TryToBinary TryUrlDecode TryValidateUTF8 TypedNullLiteral
    UnaryPositive Uniform UrlDecode UrlEncode ValidateUTF8 VectorCosineSimilarity VectorInnerProduct VectorL2Distance
    VectorNorm VectorNormalize ZeroIfNull CommonExpressionDef CommonExpressionRef With
""")

# --- operators of org.apache.spark.sql.catalyst.plans.logical ------------------------------------------

# These give a task's rows to a random generator, a counter or a user's code, one after the other. Their answer depends
# on the rows that share a task, and so on all files that are read.
WHOLE_TASKS: frozenset[str] = _names("""
    AttachDistributedSequence MapInArrow MapInPandas MapPartitions MapPartitionsInR MapPartitionsInRWithArrow Sample
    ScriptTransformation
""")

# These give the same rows each time they run over the same rows, whatever the order of the rows. A join's side that is
# made of nothing else may run twice: once to choose the other side's files. `Aggregate` has functions of its own list.
REPEATABLE: frozenset[str] = _names("""
    Aggregate Filter Join LocalRelation LogicalRelation OneRowRelation Project Range RebalancePartitions Repartition
    RepartitionByExpression Sort SubqueryAlias Union
    Average Count Max Min Sum
""")

# --- settings ----------------------------------------------------------------------------------------

# A family ends in a star. Whole names win over families, longer families over shorter ones. Unset means the default.

# Settings that change the value of an expression, or how a text is parsed.
MEANING: frozenset[str] = _names(
    """
    legacy.*
    # types and texts
    ansi.* assumeAnsiFalseIfNotPersisted.enabled session.timeZone timestampType decimalOperations.allowPrecisionLoss
    parser.* variable.substitute allowNamedFunctionArguments charAsVarchar timeType.enabled types.framework.enabled
    geospatial.enabled timestampNanosTypes.enabled
    analyzer.singlePassResolver.* analyzer.sqlFunctionResolution.applyConfOverrides extensions
    extensions.test.loadFromCp experimental.optimizer.pyTranspilers experimental.optimizer.transpilePyUDFs
    # which function a name means
    function.* functionResolution.sessionOrder path.enabled defaultPath
    # functions
    binaryOutputStyle chunkBase64String.enabled collation.* runCollationTypeCastsBeforeAliasAssignment.enabled
    columnNameOfCorruptRecord icu.caseMappings.enabled json.enableExactStringParsing json.enablePartialResults
    json.useUnsafeRow jsonGenerator.* mapKeyDedupPolicy mapZipWithUsesJavaCollections variant.allowDuplicateKeys
    variant.validateUnicodeInJsonParsing xml.variant.respectInferSchema
    """,
    "spark.sql.",
) | _names("""
    spark.plugins spark.version java.version
    # Comet: where it may differ from Spark
    spark.comet.expression.* spark.comet.operator.* spark.comet.caseConversion.enabled
    spark.comet.exec.strictFloatingPoint spark.comet.exec.respectDataFusionConfigs spark.comet.datafusion.*
    spark.comet.exec.scalaUDF.codegen.enabled
""")

# Settings that change which files, rows, columns and values a scan has.
READING: frozenset[str] = (
    _names(
        """
        caseSensitive
        # which files there are
        files.ignoreCorruptFiles files.ignoreMissingFiles files.ignoreInvalidPartitionPaths
        files.ignoredPathSegmentRegex files.archive.reader.enabled
        streaming.fileStreamSink.ignoreMetadata optimizer.metadataOnly sources.useV1SourceList
        sources.partitionColumnTypeInference.enabled sources.validatePartitionColumns hive.convertMetastoreParquet
        hive.convertMetastoreParquet.mergeSchema hive.caseSensitiveInferenceMode hive.convertMetastoreAsNullable
        storeAssignmentPolicy legacy.skipTypeValidationOnAlterPartition legacy.pathOptionBehavior.enabled
        legacy.extraOptionsBehavior.enabled legacy.readFileSourceTableCacheIgnoreOptions
        # contents of the files
        parquet.binaryAsString parquet.datetimeRebaseModeInRead parquet.fieldId.read.enabled
        parquet.fieldId.read.ignoreMissing parquet.ignoreVariantAnnotation parquet.inferTimestampNTZ.enabled
        parquet.int96AsTimestamp parquet.int96RebaseModeInRead parquet.int96TimestampConversion parquet.mergeSchema
        parquet.reader.respectUnknownTypeAnnotation.enabled parquet.respectSummaryFiles legacy.parquet.*
        udt.* variant.allowReadingShredded variant.pushVariantIntoScan variant.pushVariantIntoScan.*
        # values of columns that a file lacks, and padding
        defaultColumn.* preserveCharVarcharTypeInfo readSideCharPadding legacy.charVarcharAsString
        legacy.noCharPaddingInPredicate
        """,
        "spark.sql.",
    )
    | _names("spark.files.ignoreCorruptFiles spark.files.ignoreMissingFiles")
    | _names("spark.comet.scan.unsignedSmallIntSafetyCheck spark.comet.scan.allowDisabledParquetVectorizedReader")
    | _names(
        """
        catalog.enableServerSidePlanning changeDataFeed.* changelogV2.enabled checkLatestSchemaOnRead
        createDataFrame.dropNullColumns deletionVectors.useMetadataRowIndex enableTableRedirectFeature
        failOnPartitionValueParsingError normalizePartitionValuesOnRead schema.removeSparkInternalMetadata
        skipRedirectFeature spark.sql.delta.sharing.* typeWidening.bypassUnsupportedTypeChangeCheck
        typeWidening.removeSchemaMetadata workAroundColonsInHadoopPaths.enabled
        """,
        "spark.databricks.delta.",
    )
)

# The other settings of Spark SQL and Delta: speed, places, output; writers; whole plans.
_SQL = (
    _names(
        """
        # plans: joins, aggregates, subqueries, names of columns
        adaptive.* alwaysInlineCommonExpr analyzer.* autoBroadcastJoinThreshold binByRelationOperator.enabled
        broadcastExchange.* broadcastTimeout bucketing.* cartesianProductExec.* cbo.* constraintPropagation.enabled
        crossJoin.enabled cteRecursionAnchorRowsLimitToConvertToLocalRelation cteRecursionLevelLimit
        cteRecursionRowLimit cteRelationDefMaxRows.enabled dropDuplicates.deterministicKeyOrder.enabled
        enforceTypeCoercionBeforeUnionDeduplication.enabled exchange.reuse groupByAliases groupByOrdinal
        join.asofJoin.enabled join.preferSortMergeJoin join.sortMergeAsOfJoin.enabled
        join.splitStreamedSideJoinCondition lateralColumnAlias.enableImplicitResolution lazySetOperatorOutput.enabled
        leafNodeDefaultParallelism limit.initialNumPartitions limit.scaleUpFactor
        listagg.allowDistinctCastWithOrder.enabled maxBroadcastTableSize maxSinglePartitionBytes
        objectHashAggregate.sortBased.fallbackThreshold operatorPipeSyntaxEnabled optimizeNullAwareAntiJoin
        optimizeNullAwareAntiJoin.broadcastThreshold optimizer.* orderByOrdinal orderingAwareLimitOffset pivotMaxValues
        prioritizeOrdinalResolutionInSort.enabled requireAllClusterKeysForCoPartition
        requireAllClusterKeysForDistribution retainGroupColumns selfJoinAutoResolveAmbiguity sessionWindow.* shuffle.*
        shuffleDependency.* shuffledHashJoinFactor shuffleExchange.* sort.enableRadixSort sortMergeJoinExec.*
        stableDerivedColumnAlias.enabled transposeMaxValues tvf.allowMultipleTableArguments.enabled
        unionOutputPartitioning useCommonExprIdForAlias view.maxNestedViewDepth window.segmentTree.* windowExec.*
        # how it runs
        parser.manageParserCaches parser.parserDfaCacheFlushRatio parser.parserDfaCacheFlushThreshold artifact.*
        cache.serializer codegen.* columnVector.offheap.enabled dataFrameQueryContext.enabled datetime.java8API.enabled
        defaultCacheStorageLevel defaultSizeInBytes execution.* filesourceTableRelationCacheSize
        inMemoryColumnarStorage.* inMemoryTableScanStatistics.enable metadataCacheTTLSeconds
        resultQueryStage.maxThreadThreshold statistics.* subexpressionElimination.* subquery.maxThreadThreshold
        # output and logs
        cli.print.header dataframeCache.logLevel debug debug.maxToStringFields error.messageFormat event.truncate.length
        expressionTreeChangeLog.level extendedExplainProviders lightweightPlanChangeValidation maxMetadataStringLength
        maxPlanStringLength nameResolutionLog.level planChangeLog.* planChangeValidation
        planChangeValidation.nullability queryExecutionListeners redaction.* repl.* stackTracesInDataFrameContext ui.*
        # other ways in
        classic.shuffleDependency.fileCleanup.enabled connect.* pipelines.* planner.pythonExecution.memory pyspark.*
        python.filterPushdown.enabled reflect.allowList restrictedMode.enabled scripting.*
        scriptTransformation.exitTimeoutInSeconds session.localRelationBatchOfChunksSizeBytes
        session.localRelationCacheThreshold session.localRelationChunkSizeBytes session.localRelationChunkSizeLimit
        session.localRelationChunkSizeRows session.localRelationSizeLimit streaming.* thriftServer.* thriftserver.*
        # catalogs
        catalog.* catalogImplementation defaultCatalog defaultUrlStreamHandlerFactory.enabled globalTempDatabase hive.*
        maven.additionalRemoteRepositories runSQLOnFiles timeTravel.atSyntax.enabled timeTravelTimestampKey
        timeTravelVersionKey warehouse.dir
        # other formats
        avro.* csv.* json.filterPushdown.enabled kafka.disallowedOptions orc.* protobuf.descriptorCacheSize
        sources.binaryFile.maxLength sources.disabledJdbcConnProviderList
        xml.schemaInference.incrementalTypeCasting.enabled
        # scans: how they are divided and filtered, not their contents
        dataSource.alwaysCreateV2Predicate dataSource.skipAssertOnPredicatePushdown files.maxPartitionBytes
        files.maxPartitionNum files.minPartitionNum files.openCostInBytes files.supportSecondOffsetFormat
        parquet.aggregatePushdown parquet.columnarReaderBatchSize parquet.enableNestedColumnVectorizedReader
        parquet.enableNullTypeVectorizedReader parquet.enableVectorizedReader parquet.filterPushdown
        parquet.filterPushdown.* parquet.pushdown.inFilterThreshold parquet.recordLevelFilter.enabled
        sources.bucketing.* sources.default sources.fileCompressionFactor sources.ignoreDataLocality
        sources.parallelPartitionDiscovery.* sources.schemaStringLengthThreshold sources.structPredicateDecompose.*
        sources.useListFilesFileSystemList sources.v2.bucketing.*
        # commands and writers
        addPartitionInBatch.size dropTableOnView.enabled files.maxRecordsPerFile fileSource.insert.enforceNotNull
        generatedColumn.allowNullableIngest.enabled insertIntoReplaceOn.enabled insertIntoReplaceOnByName.enabled
        insertIntoReplaceUsing.enabled insertIntoReplaceUsingByName.enabled insertIntoReplaceWhereColumnList.enabled
        insertNestedTypeCoercion.enabled maxConcurrentOutputFileWriters mergeNestedTypeCoercion.enabled
        parquet.compression.codec parquet.datetimeRebaseModeInWrite parquet.fieldId.write.enabled
        parquet.int96RebaseModeInWrite parquet.output.committer.class parquet.outputTimestampType
        parquet.variant.annotateLogicalType.enabled parquet.writeLegacyFormat sources.commitProtocolClass
        sources.outputCommitterClass sources.partitionOverwriteMode truncateTable.ignorePermissionAcl.enabled
        variant.forceShreddingSchemaForTest variant.inferShreddingSchema variant.shredding.*
        variant.writeShredding.enabled
        # of the old ways, those of commands, of other sources and of user code
        legacy.addSingleFileInAddFile legacy.allowNonEmptyLocationInCTAS legacy.createHiveTableByDefault
        legacy.db2.* legacy.execution.* legacy.hive.* legacy.keepCommandOutputSchema legacy.mssqlserver.* legacy.mysql.*
        legacy.oracle.* legacy.postgres.* legacy.setCommandRejectsSparkCoreConfs
        """,
        "spark.sql.",
    )
    | _names(
        """
        # snapshots: which one is read is decided before our rule sees its files
        allFilesInCrc.* checkpoint.* checkpointSchema.* checkpointV2.* checksum.*
        checksumDVMetrics.enabled checksumDeletedRecordCountsHistogramMetrics.enabled delta.log.* deltaLog.*
        lastCheckpoint.* lastCommitVersionInSession maxSnapshotLineageLength
        readProtocolAndMetadataFromChecksum.enabled snapshot.logging.maxFilesThreshold snapshotCache.storageLevel
        snapshotLoading.maxRetries snapshotPartitions stalenessLimit timeTravel.* versionChecksum.* writeChecksumFile.*
        incremental.* adaptiveMetadataTree.preview.enabled amt.* coordinatedCommits.* statsAsStructInCheckpoint.*
        # by which of Spark's interfaces a table is read; the rule sees this in the plan
        v2.enableMode
        # files that Delta leaves out, for no row in them matters
        optimizeMetadataQuery.enabled skipping.* stats.* generatedColumn.partitionFilterOptimization.enabled
        deletionVectors.propagateCloseFailure internalUdfOptimization.enabled includeTableIdInFileIndexComparison
        # streams
        streaming.*
        # commands and writers
        allowArbitraryProperties.enabled alter.* alterLocation.* alterTable.* alwaysCollectStats.enabled autoCompact.*
        backfill.* catalog.update.* changeColumn.* checkConstraints.validation.enabled clone.*
        clusteredTable.numClusteringColumnsLimit collectStats.* columnMapping.* command.* commandInvariantChecksThrow
        commandInvariantChecksUseUnreliable commit.* commitInfo.userMetadata commitLock.enabled commitMetrics.*
        commitStats.force commitValidation.* conflictChecker.* conflictDetection.* constraints.* convert.*
        convertEmptyToNullForStringPartitionCol createEmptySchemaTable.enabled delete.*
        deletionVectors.disableTightBoundOnFileCreationForDevOnly deletionVectors.packing.targetSize
        deletionVectors.skipCommitCheck deltaTableBuilder.* dml.* dmlMetricsFromMetadata.enabled
        domainMetadatasInCrc.maxAllowed dummyFileManager.* duplicateActionCheck.enabled dynamicPartitionOverwrite.*
        emptyFileCheck.throwEnabled featureEnablement.* fileSizeHistogramMetrics.enabled
        generatedColumn.allowNullableIngest.enabled generatedColumn.validateOnWrite.enabled geo.preview.enabled
        history.* hms.schema.forceAlterTableDataSchema hudi.* iceberg.* identityColumn.* import.*
        inCommitTimestamp.retainEnablementInfoFix.enabled insert.* insertOverwrite.* insertReplaceOnOrUsing.*
        isDeltaTable.* legacy.allowAmbiguousPathsInCreateTable legacy.storeOptionsAsProperties liquid.*
        loadFileSystemConfigsFromDataFrameOptions maxCommitAttempts maxNonConflictCommitAttempts merge.*
        metrics.alwaysReportSomeZeroMetrics nullPartitionCheck.throwEnabled numRecordsValidation.enabled optimize.*
        optimizeWrite.* partitionColumnChangeCheck partitionColumnValidity.enabled postCommitHook.throwOnError
        properties.defaults.* replace.* replaceOn.* replaceUsing.* replaceWhere.* requiredSparkConfsCheck.enabled
        resolveMergeUpdateStructsByName.enabled restore.* retentionDurationCheck.enabled rowTracking.*
        schema.autoMerge.enabled schema.removeExistsDefault schema.typeCheck.enabled schemaEvolution.*
        setTransactionsInCrc.* skipRecordingEmptyCommits table.parquetV2.timestampOutputType tableFeatures.*
        tablePropertyConstraintsCheck.enabled testOnly.* typeWidening.allowAutomaticWidening
        typeWidening.allowIntegralDecimalCoercion typeWidening.allowTypeChangeStreamingDeltaSource
        typeWidening.allowUnsupportedIcebergTypeChanges typeWidening.bypassStreamingTypeChangeCheck
        typeWidening.enableStreamingSchemaTracking uniform.* update.* updateAndMergeCastingFollowsAnsiEnabledFlag
        vacuum.* variant.disableVariantTableFeatureForSpark40 variant.forceUsePreviewTableFeature variantShredding.*
        write.*
        """,
        "spark.databricks.delta.",
    )
    | _names("mdc.* stringPrefixLength", "spark.databricks.io.skipping.")
)

# The settings of 'reading' without effect unless a column of the scan has the metadata `parquet.field.id`. Delta's
# extension sets the first in every session.
ONLY_WITH_FIELD_IDS = _names("fieldId.read.enabled fieldId.read.ignoreMissing", "spark.sql.parquet.")
# Settings outside of Spark SQL; its registries do not list them.
_CORE = _names(
    """
    acls.* admin.* api.mode app.* appStateStore.* archives authenticate authenticate.* barrier.* block.* blockManager.*
    broadcast.* buffer.* checkpoint.* cleaner.* connect.* cores.max dead.* decommission.* default.parallelism deploy.*
    diskStore.* driver.* dynamicAllocation.* eventLog.* excludeOnFailure.* executor.* executorEnv.* extraListeners
    file.* files files.* hadoopRDD.* history.* home io.* jars jars.* kerberos.* kryo.* kryoserializer.* kubernetes.*
    local.dir locality.* log.* logConf master master.* memory.* metrics.* modify.* network.* port.* pyspark.*
    python.* r.* rdd.* redaction.* reducer.* remote repl.* resources.* rpc.* scheduler.* security.* serializer
    serializer.* shuffle.* shutdown.* sparkr.* speculation speculation.* ssl.* stage.* standalone.* storage.*
    streaming.* submit.* task.* taskMetrics.* ui.* unsafe.* user.* worker.* yarn.*
    # our own
    hedgerow.*
    """,
    "spark.",
)
# Places of files, access to them, and Parquet's writer. The settings of its reader are not listed: some drop rows.
_HADOOP = _names("""
    datanucleus.* dfs.* fs.* hadoop.security.* hadoop.tmp.dir hive.* io.file.buffer.size ipc.* javax.jdo.*
    mapreduce.fileoutputcommitter.* mapreduce.manifest.committer.* mapreduce.outputcommitter.* yarn.*
    parquet.block.size parquet.bloom.filter.* parquet.columnindex.truncate.length parquet.compression
    parquet.compression.codec.* parquet.dictionary.page.size parquet.enable.dictionary parquet.enable.dictionary#*
    parquet.enable.summary-metadata parquet.memory.* parquet.page.* parquet.statistics.truncate.length
    parquet.summary.metadata.level parquet.writer.* parquet.page.write-checksum.enabled
""")
# Settings of programs that people load into Spark.
OF_OTHERS: frozenset[str] = _names("""
    aws.glue.* sedona.* spark.comet.* spark.dataflint.* spark.datadog.* spark.openlineage.* spark.sedona.*
    spark.sql.iceberg.*
""") | frozenset(ENGINES_OFF)
HARMLESS: frozenset[str] = (
    _SQL | _CORE | _HADOOP | frozenset("spark.hadoop." + name for name in _HADOOP) | OF_OTHERS | {"hedgerow.*"}
)

# The namespaces of the code that reads files and evaluates expressions. Only there may a setting on no list matter.
# Spark hands all settings of a session to Hadoop, with and without `spark.hadoop.`.
_HADOOP_READERS = ("hadoop.", "io.", "mapred.", "mapreduce.", "parquet.")
NAMESPACES: tuple[str, ...] = (
    *("spark.sql", "spark.databricks.", "spark.auron.", "spark.blaze.", "spark.gluten.", "spark.rapids."),
    *_HADOOP_READERS,
    *("spark.hadoop." + name for name in _HADOOP_READERS),
)

# Spark's default list; without Parquet in it, rows have no `_metadata`.
V1_SOURCES = "avro,csv,json,kafka,orc,parquet,text"
# The settings of our own writes, so that files hold exactly the values and rows that we write.
WRITING: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 has no minimum and maximum
        "spark.sql.parquet.writeLegacyFormat": "false",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.fieldId.write.enabled": "true",
        "spark.sql.parquet.variant.annotateLogicalType.enabled": "true",
        "spark.sql.variant.writeShredding.enabled": "false",
        "spark.sql.variant.inferShreddingSchema": "false",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        "spark.sql.sources.useV1SourceList": V1_SOURCES,
        "spark.sql.files.maxRecordsPerFile": "0",
        # With these on, a copy may lack rows.
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.databricks.delta.table.parquetV2.timestampOutputType": "TIMESTAMP_MICROS",
        "spark.databricks.delta.write.utcTimestampPartitionValues": "true",
        "spark.databricks.delta.insert.preserveNullSourceStructs": "true",
        "spark.databricks.delta.schema.autoMerge.enabled": "false",
        "spark.databricks.delta.optimizeWrite.enabled": "false",
        "spark.databricks.delta.autoCompact.enabled": "false",
        **ENGINES_OFF,
    }
)

# --- reader options, in lower case --------------------------------------------------------------------

HARMLESS_OPTIONS: frozenset[str] = _names("""
    # where the table is; our rule sees its files
    path paths serialization.format
    # which snapshot
    timestampasof versionasof
    # of writers only
    __v1_save_as_table_overwrite compression datachange maxrecordsperfile optimizewrite overwriteschema
    parquet.compression parquet.writer.version partitionoverwritemode replaceon replaceusing replacewhere
    spark.sql.parquet.outputtimestamptype targetalias txnappid txnversion usenullintolerantequalitywithdpo usermetadata
    writepartitioncolumns
    # of streams only
    checkpointlocation ignorechanges ignoredeletes ignorefiledeletion maxfilespertrigger queryname
    # access
    fs.*
""")

# --- lookups -----------------------------------------------------------------------------------------


def kind_of_setting(key: str) -> Kind:
    """Return the kind of a setting, by its whole name if that is listed, else by the longest family that contains it.

    >>> kind_of_setting("spark.sql.legacy.sizeOfNull"), kind_of_setting("spark.sql.noSuchThing")
    ('meaning', 'unknown')
    """
    by_kind: tuple[tuple[Kind, frozenset[str]], ...] = (
        ("reading", READING),
        ("meaning", MEANING),
        ("harmless", HARMLESS),
    )
    for kind, names in by_kind:
        if key in names:
            return kind
    families: list[tuple[int, Kind]] = [
        (len(name), kind)
        for kind, names in by_kind
        for name in names
        if name.endswith("*") and key.startswith(name[:-1])
    ]
    return max(families, key=lambda family: family[0], default=(0, "unknown"))[1]


def is_in(name: str, names: Iterable[str]) -> bool:
    """True if the names have this one, or a family that contains it.

    >>> is_in("a.b", ["a.*"]), is_in("a.b", ["a"])
    (True, False)
    """
    return any(name.startswith(own[:-1]) if own.endswith("*") else name == own for own in names)


def is_harmless_option(name: str) -> bool:
    """True if a reader option changes neither files nor rows nor values."""
    return is_in(name.lower(), HARMLESS_OPTIONS)

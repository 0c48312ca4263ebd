package archive

import (
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// The leaf columns of a file, in order.
const (
	columnTopicID = iota
	columnPartition
	columnOffset
	columnTimestamp
	columnTimestampType
	columnKey
	columnValue
	columnHeaderKey
	columnHeaderValue
	columnCount
)

// fileSchema is the schema of every file. Keys, values and headers are bytes as the broker holds them; a missing key or
// value is null, an empty one is not. Timestamps are milliseconds.
func fileSchema() *schema.GroupNode {
	required, optional := parquet.Repetitions.Required, parquet.Repetitions.Optional
	milliseconds := schema.NewTimestampLogicalType(true, schema.TimeUnitMillis)
	element := schema.MustGroup(schema.NewGroupNode("element", required, schema.FieldList{
		schema.NewByteArrayNode("key", required, -1),
		schema.NewByteArrayNode("value", optional, -1),
	}, -1))
	return schema.MustGroup(schema.NewGroupNode("record", required, schema.FieldList{
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("topic_id", required, schema.UUIDLogicalType{},
			parquet.Types.FixedLenByteArray, 16, -1)),
		schema.NewInt32Node("partition", required, -1),
		schema.NewInt64Node("offset", required, -1),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("timestamp", required, milliseconds, parquet.Types.Int64, 0, -1)),
		schema.NewInt32Node("timestamp_type", required, -1),
		schema.NewByteArrayNode("key", optional, -1),
		schema.NewByteArrayNode("value", optional, -1),
		schema.MustGroup(schema.ListOfWithName("headers", element, required, -1)),
	}, -1))
}

// writerProperties compress with zstd. Offsets and timestamps rise slowly: their differences are small.
func writerProperties() *parquet.WriterProperties {
	return parquet.NewWriterProperties(
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(1),
		parquet.WithCreatedBy("kappactl"),
		parquet.WithDictionaryFor("offset", false), parquet.WithEncodingFor("offset", parquet.Encodings.DeltaBinaryPacked),
		parquet.WithDictionaryFor("timestamp", false),
		parquet.WithEncodingFor("timestamp", parquet.Encodings.DeltaBinaryPacked),
		parquet.WithDictionaryFor("value", false), parquet.WithStatsFor("value", false), parquet.WithStatsFor("key", false),
	)
}

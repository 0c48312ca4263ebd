package typed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
)

// Fingerprint is 16 hexadecimal digits that differ when records may be decoded in another way: the version of the
// decoder, the format, and the declared columns in their order.
func Fingerprint(src job.Source) string {
	text, err := json.Marshal(struct {
		Version int
		Format  string
		Columns []job.Column
	}{format.Version, src.Format, src.Columns})
	if err != nil {
		panic(err) // strings
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// The columns behind the declared ones. A job declares no column whose name begins with an underscore.
const (
	offsetColumn    = "_offset"
	timestampColumn = "_timestamp" // as an archive file has it
	bytesColumn     = "_bytes"     // of key and value
	recordColumn    = "_record"    // of a record that was rejected; NULL for all others
	serviceColumns  = 4
)

// fileSchema is the schema of a typed file with these columns.
func fileSchema(fields []arrow.Field) (*schema.GroupNode, error) {
	required, optional := parquet.Repetitions.Required, parquet.Repetitions.Optional
	nodes := make(schema.FieldList, 0, len(fields)+serviceColumns)
	for _, f := range fields {
		n, err := columnNode(f)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	milliseconds := schema.NewTimestampLogicalType(true, schema.TimeUnitMillis)
	nodes = append(nodes,
		schema.NewInt64Node(offsetColumn, required, -1),
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical(timestampColumn, required, milliseconds, parquet.Types.Int64, 0,
			-1)),
		schema.NewInt64Node(bytesColumn, required, -1),
		schema.NewByteArrayNode(recordColumn, optional, -1),
	)
	return schema.NewGroupNode("record", required, nodes, -1)
}

// columnNode is the Parquet column of a field of the decoder.
func columnNode(f arrow.Field) (schema.Node, error) {
	node := func(l schema.LogicalType, t parquet.Type, length int) (schema.Node, error) {
		return schema.NewPrimitiveNodeLogical(f.Name, parquet.Repetitions.Optional, l, t, length, -1)
	}
	fixed, bytes := parquet.Types.FixedLenByteArray, parquet.Types.ByteArray
	switch t := f.Type.(type) {
	case *arrow.BooleanType:
		return node(schema.NoLogicalType{}, parquet.Types.Boolean, 0)
	case *arrow.Int16Type:
		return node(schema.NewIntLogicalType(16, true), parquet.Types.Int32, 0)
	case *arrow.Int32Type:
		return node(schema.NoLogicalType{}, parquet.Types.Int32, 0)
	case *arrow.Int64Type:
		return node(schema.NoLogicalType{}, parquet.Types.Int64, 0)
	case *arrow.Float32Type:
		return node(schema.NoLogicalType{}, parquet.Types.Float, 0)
	case *arrow.Float64Type:
		return node(schema.NoLogicalType{}, parquet.Types.Double, 0)
	case *arrow.Decimal128Type:
		return node(schema.NewDecimalLogicalType(t.Precision, t.Scale), fixed, arrow.Decimal128SizeBytes)
	case *arrow.Date32Type:
		return node(schema.DateLogicalType{}, parquet.Types.Int32, 0)
	case *arrow.Time64Type:
		return node(schema.NewTimeLogicalType(false, schema.TimeUnitMicros), parquet.Types.Int64, 0)
	case *arrow.TimestampType:
		return node(schema.NewTimestampLogicalType(t.TimeZone != "", schema.TimeUnitMicros), parquet.Types.Int64, 0)
	case *arrow.FixedSizeBinaryType:
		return node(schema.UUIDLogicalType{}, fixed, t.ByteWidth)
	case *arrow.LargeBinaryType:
		return node(schema.NoLogicalType{}, bytes, -1)
	case *arrow.LargeStringType:
		if extension, _ := f.Metadata.GetValue("ARROW:extension:name"); extension == "arrow.json" {
			return node(schema.JSONLogicalType{}, bytes, -1)
		}
		return node(schema.StringLogicalType{}, bytes, -1)
	}
	return nil, fmt.Errorf("column %s of type %s has no typed form", f.Name, f.Type)
}

// fieldsOf are the fields of the decoder's batches.
func fieldsOf(d *format.Decoder) []arrow.Field {
	return d.Schema().Field(0).Type.(*arrow.StructType).Fields() //nolint:forcetypeassert // a batch has one struct
}

// rowsOf is the struct of a batch.
func rowsOf(b arrow.RecordBatch) *array.Struct {
	return b.Column(0).(*array.Struct) //nolint:forcetypeassert // a batch has one struct
}

func writerProperties() *parquet.WriterProperties {
	return parquet.NewWriterProperties(
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(1),
		parquet.WithCreatedBy("kappactl"),
		parquet.WithDictionaryFor(offsetColumn, false),
		parquet.WithEncodingFor(offsetColumn, parquet.Encodings.DeltaBinaryPacked),
		parquet.WithDictionaryFor(timestampColumn, false),
		parquet.WithEncodingFor(timestampColumn, parquet.Encodings.DeltaBinaryPacked),
	)
}

package typed

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// writeColumn writes an array as the next column of a row group.
func writeColumn(group file.SerialRowGroupWriter, a arrow.Array) error {
	switch a := a.(type) {
	case *array.Boolean:
		return writeArray(group, a, a.Value)
	case *array.Int16:
		return writeArray(group, a, func(i int) int32 { return int32(a.Value(i)) })
	case *array.Int32:
		return writeArray(group, a, a.Value)
	case *array.Date32:
		return writeArray(group, a, func(i int) int32 { return int32(a.Value(i)) })
	case *array.Int64:
		return writeArray(group, a, a.Value)
	case *array.Time64:
		return writeArray(group, a, func(i int) int64 { return int64(a.Value(i)) })
	case *array.Timestamp:
		return writeArray(group, a, func(i int) int64 { return int64(a.Value(i)) })
	case *array.Float32:
		return writeArray(group, a, a.Value)
	case *array.Float64:
		return writeArray(group, a, a.Value)
	case *array.Decimal128:
		return writeArray(group, a, func(i int) parquet.FixedLenByteArray {
			b := arrow.Decimal128Traits.CastToBytes([]decimal128.Num{a.Value(i)})
			return parquet.FixedLenByteArray(reversed(b))
		})
	case *array.FixedSizeBinary:
		return writeArray(group, a, func(i int) parquet.FixedLenByteArray { return a.Value(i) })
	case *array.LargeString:
		return writeArray(group, a, func(i int) parquet.ByteArray { return parquet.ByteArray(a.Value(i)) })
	case *array.LargeBinary:
		return writeArray(group, a, func(i int) parquet.ByteArray { return a.Value(i) })
	}
	return fmt.Errorf("a column of type %s has no typed form", a.DataType())
}

func writeArray[T any](group file.SerialRowGroupWriter, a arrow.Array, value func(i int) T) error {
	values, levels := present(a, value)
	return writeValues(group, values, levels)
}

// reversed is a number's bytes in the other order.
func reversed(b []byte) []byte {
	out := slices.Clone(b)
	slices.Reverse(out)
	return out
}

package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errEnough ends an answer in front of a batch: what came before is complete, and the rest is asked for again.
var errEnough = errors.New("the answer unpacks to more than is taken at once")

// bounded unpacks batches until they are left bytes or more, and at least one. A megabyte of well compressed batches may unpack to a
// thousand. One answer's goroutine owns it.
type bounded struct {
	kgo.Decompressor
	left int
}

func (b *bounded) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if b.left <= 0 {
		return nil, errEnough
	}
	out, err := b.Decompressor.Decompress(src, codec)
	b.left -= len(out)
	return out, err
}

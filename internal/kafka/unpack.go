package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errEnough ends an answer before a batch: the batches before it are complete, and the rest is fetched again.
var errEnough = errors.New("the uncompressed answer exceeds the limit")

// bounded unpacks batches until their uncompressed size reaches left bytes, and at least one batch. A megabyte of well
// compressed batches can expand to a gigabyte. The goroutine of one answer owns it.
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

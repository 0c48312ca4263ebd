package main

import (
	"context"
	"fmt"
)

const hugeRecord = 5_000_000

// cells are the kinds of topic: compressions, partitions, sizes of a record; records larger than a fetch; and those
// that unpack to hundreds of times what was fetched.
func cells() []cell {
	var out []cell
	for _, size := range []int{100, 1_000, 10_000} {
		for _, codec := range []string{"none", "lz4", "zstd"} {
			for _, partitions := range []int{1, 4, 12} {
				out = append(out, cell{Codec: codec, Partitions: partitions, Size: size})
			}
		}
	}
	for _, codec := range []string{"none", "lz4", "zstd"} {
		out = append(out, cell{Codec: codec, Partitions: 4, Size: hugeRecord})
	}
	for _, codec := range []string{"lz4", "zstd"} {
		out = append(out, cell{Codec: codec, Partitions: 4, Size: 10_000, Uniform: true})
	}
	return out
}

func (c cell) kind() string {
	if c.Uniform {
		return thousands(int64(c.Size)) + ", one word repeated"
	}
	return thousands(int64(c.Size))
}

// matrixBench replays topics of every kind. One that fails is noted, and the others go on.
func (b *bench) matrixBench(ctx context.Context) error {
	for i, c := range cells() {
		name := fmt.Sprintf("texts-%d", i)
		t := texts(name, max(b.matrixBytes/c.Size, 10), c.Size, c.Partitions, c.Codec, c.Uniform)
		m, err := b.replayOnce(ctx, t, countJob("texts", name, "url", b.workers))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.failed(fmt.Sprintf("matrix: %s bytes, %s, %d partitions", c.kind(), c.Codec, c.Partitions), err)
			continue
		}
		c.measure = m
		b.result.Matrix = append(b.result.Matrix, c)
		b.say("%s bytes, %s, %d partitions: %.0f MB/s, peak %.0f MB", c.kind(), c.Codec, c.Partitions, c.throughput()/1e6,
			float64(m.Peak)/1e6)
	}
	return nil
}

// throughput is bytes of values a second while the log was read.
func (m measure) throughput() float64 {
	if m.Replay <= 0 {
		return 0
	}
	return float64(m.Bytes) / m.Replay
}

package kafkatest

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Fake starts an in-process broker with its log in a temporary folder and returns its address.
func Fake(t testing.TB) []string {
	t.Helper()
	return FakeCluster(t).ListenAddrs()
}

// FakeCluster starts an in-process cluster of one node (kfake.NumBrokers gives more) for tests that inject faults.
func FakeCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	base := []kfake.Opt{kfake.NumBrokers(1), kfake.DataDir(t.TempDir()), kfake.DefaultNumPartitions(1)}
	c, err := kfake.NewCluster(append(base, opts...)...)
	if err != nil {
		t.Fatalf("start an embedded broker: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

package devstack

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// defaultPartitions is the number of partitions of a new topic by default.
const defaultPartitions = 4

// broker is the embedded Kafka: one node that listens on loopback.
type broker struct {
	cluster *kfake.Cluster
	address string
	port    int
}

// startBroker listens on port, or on a free port if it is 0 or taken.
func startBroker(dir, clusterID string, port int, log func(string)) (*broker, error) {
	data := filepath.Join(dir, "kafka")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("create the embedded Kafka's folder: %w", err)
	}
	c, err := newCluster(data, clusterID, port, log)
	if port != 0 && errors.Is(err, syscall.EADDRINUSE) {
		log(fmt.Sprintf("port %d of the embedded Kafka is taken; using another", port))
		c, err = newCluster(data, clusterID, 0, log)
	}
	if err != nil {
		return nil, fmt.Errorf("start the embedded Kafka in %s: %w", data, err)
	}
	b := &broker{cluster: c, address: c.ListenAddrs()[0]}
	if b.port, err = portOf(b.address); err != nil {
		c.Close()
		return nil, err
	}
	return b, nil
}

func newCluster(data, clusterID string, port int, log func(string)) (*kfake.Cluster, error) {
	return kfake.NewCluster(
		kfake.NumBrokers(1), kfake.Ports(port), kfake.ClusterID(clusterID), kfake.DataDir(data),
		kfake.DefaultNumPartitions(defaultPartitions), kfake.WithLogger(brokerLog{log}),
	)
}

func (b *broker) close() { b.cluster.Close() }

// brokerLog forwards errors of the broker.
type brokerLog struct{ log func(string) }

// Logf implements kfake.Logger.
func (l brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	if level == kfake.LogLevelError {
		l.log("embedded Kafka: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}

func portOf(address string) (int, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("address %q: %w", address, err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("address %q: %w", address, err)
	}
	return port, nil
}

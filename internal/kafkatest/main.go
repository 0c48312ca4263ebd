package kafkatest

import (
	"os"
	"testing"
)

// BrokersVariable names a real broker (comma-separated addresses) to use in place of one a process.
const BrokersVariable = "KAPPACTL_TEST_BROKERS"

// Main runs the tests of a package, ends the real broker they started and exits.
func Main(m *testing.M) {
	code := m.Run()
	Stop()
	os.Exit(code)
}

// Stop ends the shared real broker of this process when one runs. Main calls it; packages with another TestMain may.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.broker != nil {
		shared.broker.stop()
		shared.broker = nil
	}
}

// Each runs f as subtests embedded and kafka, against the in-process and the real broker.
func Each(t *testing.T, f func(t *testing.T, brokers []string)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { f(t, Fake(t)) })
	t.Run("kafka", func(t *testing.T) { f(t, Real(t)) })
}

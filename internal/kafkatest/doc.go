// Package kafkatest gives tests their brokers: an in-process one (Fake), a real one (Real), or both in turn (Each).
//
// One real broker is started a test process, on first use, with scripts/kafka/kafka.sh; a package that calls Real or
// Each ends it at once with
//
//	func TestMain(m *testing.M) { kafkatest.Main(m) }
//
// and without that it still ends with the process, because the launcher watches a pipe that the process holds.
// KAPPACTL_TEST_BROKERS (set by kafka.sh with) names a broker to use in its place, so that many packages share one.
// Where Java or Maven is missing, tests skip and say so; with CI=true they fail.
//
// The real broker is shared: take topic names from Name. Tests that stop a broker start their own with StartReal.
package kafkatest

package kafkatest

import "errors"

// ShortLived is an option of kafka.sh: the broker is for tests of minutes, not for measurements.
const ShortLived = "--short-lived"

// Launch starts a real broker that all packages of a test run share (internal/testservers), or a benchmark's, with options of
// kafka.sh. skipped says that this machine cannot run one, in which case err says why.
func Launch(options ...string) (brokers []string, stop func(), skipped bool, err error) {
	b, err := launch("", 0, nil, options...)
	if err != nil {
		return nil, nil, errors.Is(err, errNoJava), err
	}
	return b.Brokers, b.stop, false, nil
}

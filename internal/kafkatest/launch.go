package kafkatest

import "errors"

// ShortLived is an option of kafka.sh: the broker is for tests that last minutes, not for measurements.
const ShortLived = "--short-lived"

// Launch starts a real broker, with options of kafka.sh, for all packages of a test run (internal/testservers) or for a
// benchmark. skipped reports that this machine cannot run one; err then says why.
func Launch(options ...string) (brokers []string, stop func(), skipped bool, err error) {
	b, err := launch("", 0, nil, options...)
	if err != nil {
		return nil, nil, errors.Is(err, errNoJava), err
	}
	return b.Brokers, b.stop, false, nil
}

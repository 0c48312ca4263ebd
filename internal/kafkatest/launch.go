package kafkatest

import "errors"

// Launch starts a real broker that all packages of a test run share (internal/testservers). skipped says that this
// machine cannot run one, in which case err says why.
func Launch() (brokers []string, stop func(), skipped bool, err error) {
	b, err := launch("", 0, nil)
	if err != nil {
		return nil, nil, errors.Is(err, errNoJava), err
	}
	return b.Brokers, b.stop, false, nil
}

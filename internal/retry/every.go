package retry

import (
	"context"
	"time"
)

// Every calls look at once and then every interval until ctx ends. Each call has limit at most. failed gets an error
// unless it has the text of the error before it; nothing is reported once ctx has ended.
func Every(ctx context.Context, interval, limit time.Duration, look func(context.Context) error, failed func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	reported := ""
	for {
		limited, cancel := context.WithTimeout(ctx, limit)
		err := look(limited)
		cancel()
		switch {
		case err == nil:
			reported = ""
		case ctx.Err() == nil && err.Error() != reported:
			reported = err.Error()
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

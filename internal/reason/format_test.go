package reason_test

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/reason"
)

func TestCountsHaveCommasBetweenThousands(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", -7: "-7", 999: "999", 1000: "1,000", -1000: "-1,000", -999999: "-999,999", 1234567: "1,234,567", 100_000: "100,000",
	} {
		if got := reason.Count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", time.Minute: "1m", 61 * time.Second: "1m1s",
		time.Hour + time.Second: "1h0m1s", 0: "0s", 1500 * time.Microsecond: "2ms", 20 * time.Second: "20s",
	} {
		if got := reason.Duration(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

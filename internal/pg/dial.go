package pg

import (
	"context"
	"net"
	"time"
)

// A connection whose other end is gone without a word is given up after about half a minute: what was sent must be
// acknowledged by then, and a silent line is probed.
const (
	probeAfter = 15 * time.Second
	probeEvery = 5 * time.Second
	probes     = 3
	unheard    = probeAfter + probes*probeEvery
)

// dial opens a connection that notices when the network loses the other end, however long a statement may take.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: probeEvery, Count: probes},
		Control:         giveUpUnacknowledged,
	}
	return d.DialContext(ctx, network, address)
}

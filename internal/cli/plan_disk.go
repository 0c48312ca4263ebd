package cli

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

// diskFree is how many bytes a folder's disk has left for us.
type diskFree func(folder string) (int64, error)

func freeBytes(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // it is a uint32 on macOS
}

// room compares what the replay needs with what the disks have.
func (o planOptions) room(ctx context.Context, cl *client, r *planReplay) ([]string, error) {
	folder, why, err := pg.DataFolder(ctx, cl.pool)
	if err != nil {
		return nil, err
	}
	return r.fits(folder, why, o.sys.free), nil
}

// fits notes the free space and warns when the table, what the replay stages and its write-ahead log do not fit: at most all of
// them are there at once. More than four fifths of what is free is too close.
func (r *planReplay) fits(folder, why string, free diskFree) []string {
	if r.DiskBytes == nil || r.StagingBytes == nil || r.WALBytes == nil {
		return nil
	}
	if why == "" {
		n, err := free(folder)
		if err == nil {
			r.DiskFree = &n
		} else {
			why = fmt.Sprintf("%s cannot be looked at: %v", folder, err)
		}
	}
	if r.DiskFree == nil {
		r.DiskUnknown = why
		return nil
	}
	needs := *r.DiskBytes + *r.StagingBytes + *r.WALBytes
	switch n := *r.DiskFree; {
	case needs > n:
		return []string{fmt.Sprintf("PostgreSQL's disk (%s) has %s free and the replay needs up to %s: make room before deploy", folder, render.Bytes(n), render.Bytes(needs))}
	case needs > n/5*4:
		return []string{fmt.Sprintf("PostgreSQL's disk (%s) has %s free and the replay needs up to %s", folder, render.Bytes(n), render.Bytes(needs))}
	}
	return nil
}

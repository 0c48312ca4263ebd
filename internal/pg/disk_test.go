package pg_test

import (
	"os"
	"testing"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestTheDataFolderOfALocalServerIsKnown(t *testing.T) {
	t.Parallel()
	folder, why, err := pg.DataFolder(t.Context(), open(t, pgtest.Database(t), ""))
	if err != nil || (folder == "") == (why == "") {
		t.Fatalf("%q, %q, %v", folder, why, err)
	}
	if _, err := os.Stat(folder); folder != "" && os.IsNotExist(err) {
		t.Errorf("there is no folder %s", folder)
	}
}

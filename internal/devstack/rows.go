package devstack

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// batchRows is the approximate number of rows returned at once.
const batchRows = 2048

// row is one record to write. A nil key means no key.
type row struct{ key, value []byte }

// rows returns the rows of a file in order. The returned slices stay valid.
type rows interface {
	// next returns at least one row, or io.EOF.
	next(ctx context.Context) ([]row, error)
	close() error
}

// openRows opens a file by its extension. key is the column of the record key, or empty.
func openRows(ctx context.Context, path, key string) (rows, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse("", "there is no file %s", path)
	case err != nil:
		return nil, refuse("", "%v", err)
	case info.IsDir():
		return nil, refuse("name one file", "%s is a folder", path)
	case info.Size() == 0:
		return nil, refuse("", "%s is empty", path)
	}
	name := strings.ToLower(filepath.Base(path))
	plain, zipped := strings.CutSuffix(name, ".gz")
	switch ext := filepath.Ext(plain); {
	case ext == ".parquet" && !zipped:
		return openTable(ctx, path, key, parquetFile)
	case ext == ".csv" || ext == ".tsv":
		return openTable(ctx, path, key, csvFile)
	case ext == ".ndjson" || ext == ".jsonl" || ext == ".json":
		return openNDJSON(path, key, zipped)
	}
	return nil, refuse("convert it to one of them",
		"%s: unknown kind of file; Parquet (.parquet), CSV (.csv, .tsv, .csv.gz) and NDJSON (.ndjson, .jsonl, .ndjson.gz) "+
			"can be loaded", path)
}

package main

import (
	"archive/tar"
	"io"
	"os"
)

// SizeRow is what an init adds to an image.
type SizeRow struct {
	Init  string `json:"init"`
	Bytes int64  `json:"fileBytes"`
	// ImageBytes is the layer of a FROM scratch image with that one file. A
	// dynamically linked init does not run there, and has none.
	ImageBytes *int64   `json:"imageBytes,omitempty"`
	Dynamic    bool     `json:"dynamic"`
	Ratio      *float64 `json:"fileRatioToReference,omitempty"`
}

func measureSize(cs []contender) ([]SizeRow, error) {
	var (
		rows []SizeRow
		ref  float64
	)
	for _, c := range cs {
		if c.name == bareName {
			continue
		}
		info, err := os.Stat(c.path)
		if err != nil {
			return nil, err
		}
		row := SizeRow{Init: c.name, Bytes: info.Size(), Dynamic: c.dynamic}
		if c.name == referenceName {
			ref = float64(row.Bytes)
		}
		if !c.dynamic {
			n, err := layerSize(c.path)
			if err != nil {
				return nil, err
			}
			row.ImageBytes = &n
		}
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].Ratio = over(float64(rows[i].Bytes), ref)
	}
	return rows, nil
}

// layerSize is the size of a tar archive with the one file in it.
func layerSize(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	var size counter
	w := tar.NewWriter(&size)
	if err := w.WriteHeader(&tar.Header{Name: "init", Mode: 0o755, Size: info.Size()}); err != nil {
		return 0, err
	}
	if _, err := io.Copy(w, f); err != nil {
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return int64(size), nil
}

// counter is a writer that only counts.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

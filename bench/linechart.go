package main

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// curve is one line of a chart; its name is written where it ends.
type curve struct {
	name   string
	points plotter.XYs
	dashed bool
	color  int // of lineColors
}

// lineColors starts with the palette of the bars and keeps its order of
// loudness. No two of them differ in hue only.
var lineColors = []color.Color{
	palette[0],
	palette[1],
	color.RGBA{R: 0x6a, G: 0x4c, B: 0x93, A: 0xff},
	color.RGBA{R: 0xb5, G: 0x17, B: 0x38, A: 0xff},
	color.RGBA{R: 0x4a, G: 0x8f, B: 0x29, A: 0xff},
	color.RGBA{R: 0x7f, G: 0x7f, B: 0x7f, A: 0xff},
	color.RGBA{R: 0x11, G: 0x2e, B: 0x51, A: 0xff},
}

// logChart draws curves over two logarithmic axes, with a tick at each x that
// was measured, by its label.
func logChart(path, title, xLabel, yLabel string, ticks []plot.Tick, curves []curve) error {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Marker = plot.TickerFunc(decades)
	p.Add(plotter.NewGrid())

	left, right := math.Inf(1), 0.0
	low, high := math.Inf(1), 0.0
	names := plotter.XYLabels{}
	var styles []text.Style
	for _, c := range curves {
		line, points, err := plotter.NewLinePoints(c.points)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", filepath.Base(path), err)
		}
		line.Color, points.Color = lineColors[c.color], lineColors[c.color]
		line.Width = vg.Points(1.5)
		if c.dashed {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		points.Shape, points.Radius = draw.CircleGlyph{}, vg.Points(2)
		p.Add(line, points)
		for _, xy := range c.points {
			left, right = min(left, xy.X), max(right, xy.X)
			low, high = min(low, xy.Y), max(high, xy.Y)
		}
		names.XYs = append(names.XYs, c.points[len(c.points)-1])
		names.Labels = append(names.Labels, c.name)
		style := text.Style{
			Color:   line.Color,
			Font:    plot.DefaultFont,
			YAlign:  text.YCenter,
			Handler: plot.DefaultTextHandler,
		}
		style.Font.Size = vg.Points(10)
		styles = append(styles, style)
	}
	p.Y.Min, p.Y.Max = low/1.5, high*1.5
	spread(names.XYs, p.Y.Min, p.Y.Max)
	labels, err := plotter.NewLabels(names)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", filepath.Base(path), err)
	}
	labels.TextStyle = styles
	labels.Offset = vg.Point{X: vg.Points(6)}
	p.Add(labels)
	// The names need more than a quarter of the width, on whatever scale.
	p.X.Min, p.X.Max = left/1.1, right*math.Pow(right/left, 0.36)
	if err := p.Save(vg.Points(560), vg.Points(340), path+".svg"); err != nil {
		return fmt.Errorf("drawing %s: %w", filepath.Base(path), err)
	}
	return nil
}

// spread moves the names of lines that end at about the same place apart.
func spread(at plotter.XYs, low, high float64) {
	gap := math.Pow(high/low, 0.05)
	columns := map[float64][]*plotter.XY{}
	for i := range at {
		columns[at[i].X] = append(columns[at[i].X], &at[i])
	}
	for _, column := range columns {
		slices.SortStableFunc(column, func(a, b *plotter.XY) int { return cmp.Compare(a.Y, b.Y) })
		for i := 1; i < len(column); i++ {
			column[i].Y = max(column[i].Y, column[i-1].Y*gap)
		}
		// What was pushed out at the top comes back down.
		top := high / math.Sqrt(gap)
		for _, xy := range slices.Backward(column) {
			xy.Y = min(xy.Y, top)
			top = xy.Y / gap
		}
	}
}

// decades marks 1, 10, 100… and, where there are few of these, 2 and 5 times them.
func decades(low, high float64) []plot.Tick {
	parts := []float64{1}
	if high/low < 200 {
		parts = []float64{1, 2, 5}
	}
	var ticks []plot.Tick
	for d := math.Pow(10, math.Floor(math.Log10(low))); d <= high; d *= 10 {
		for _, part := range parts {
			if v := d * part; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", v)})
			}
		}
	}
	return ticks
}

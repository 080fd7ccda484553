// Package plot draws measurements over message sizes as SVG: both axes are
// logarithmic, a line for each series, and a legend. There is one kind of
// chart, so a page of code does instead of a library.
package plot

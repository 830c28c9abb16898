// Recall against queries a second of several indexes of the same rows, all points in turn, as CSV (see docs/graph.md).
//
//   curve_bench --name sift --base base.u8 --query query.bvecs --rows 100000 --turned --csv out.csv
//               --index METHOD --index METHOD,NAME=NUMBER --ef 16 32 64 --k 1 10 100
//
// Rows of the CSV, by kind:
//   build       milliseconds of a build (host_ms), calibration included
//   search      one setting: recall@k, queries/s and milliseconds a batch. One query at a time runs on one thread, and
//               counts as long as the fastest of the rounds in which it was asked, whatever else the machine does
//               meanwhile; batches run on all threads, and the fastest round counts
//   calibrated  recall@k over all queries of what a search does that asks for a recall
//
// Recall is what a search through SQL has: of bounds and estimates as many more candidates are asked for as the backend
// asks for, and found counts what is among them, since it ranks them by the rows. That ranking is not in the times.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include "curve_data.h"
#include "described.h"
#include "methods/method.h"

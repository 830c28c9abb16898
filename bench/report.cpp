#include "report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace pgwarp::bench
{

namespace
{

constexpr char csv_header[] =
    "data,rows,dimensions,metric,k,queries,kind,method,index_options,target_recall,settings,clients,recall_at_k,"
    "queries_per_second,median_us,p99_us,engine_us,build_seconds,index_bytes,backend_peak_mb,engine_peak_mb,load_"
    "seconds,"
    "planner,repeats\n";

struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

const char* metric_name(Metric metric)
{
    return metric == Metric::l2 ? "l2" : metric == Metric::cosine ? "cosine" : "ip";
}

// The file that results are appended to; nothing where none is wanted.
File open_csv(const Options& options)
{
    if (options.csv_file.empty()) return nullptr;
    const bool is_new = !std::filesystem::exists(options.csv_file);
    File file(std::fopen(options.csv_file.c_str(), "a"));
    if (!file) throw std::runtime_error("cannot write " + options.csv_file);
    if (is_new) std::fputs(csv_header, file.get());
    return file;
}

void write_start(std::FILE* file, const Options& options, const Dataset& data, const char* kind, const Method& method,
                 std::size_t queries)
{
    std::fprintf(file, "%s,%zu,%zu,%s,%zu,%zu,%s,%s,\"%s\",", options.name.c_str(), data.base.rows, data.base.columns,
                 metric_name(data.metric), options.k, queries, kind, method.name.c_str(), method.options.c_str());
}

void write_start(std::FILE* file, const Report& report, const char* kind, const Method& method)
{
    write_start(file, report.options, report.data, kind, method, report.data.queries.rows);
}

void write_look_up(std::FILE* file, const Report& report, const char* database, const Measurement& measured)
{
    if (measured.median_us == 0) return;
    const Method primary_key = {std::string(database) + "-primary-key", Server::pgwarp, "", "", {}, {}, "", ""};
    write_start(file, report, "lookup", primary_key);
    std::fprintf(file, ",,1,1,%.1f,%.1f,%.1f,,,,,,,,%d\n", measured.queries_per_second, measured.median_us,
                 measured.p99_us, report.options.repeats);
}

// Comparable results: searches for the same target by the same number of clients.
bool same_task(const Result& a, const Result& b)
{
    return a.clients == b.clients && a.point->target == b.point->target;
}

// The best of pgvector's indexes at the same task; for a search without a target, its sequential scan.
const Result* best_peer(const Report& report, const Result& result)
{
    const Result* best = nullptr;
    for (const Result& other : report.results) {
        if (other.point->method->server != Server::pgvector || !same_task(other, result)) continue;
        if (best == nullptr || other.measured.queries_per_second > best->measured.queries_per_second) best = &other;
    }
    return best;
}

const Build* find_build(const Report& report, const char* name)
{
    const auto found = std::ranges::find_if(
        report.builds, [&](const Build& build) { return build.method->name == name && build.seconds > 0; });
    return found == report.builds.end() ? nullptr : &*found;
}

void print_ratio(const Build* peer, double seconds)
{
    if (peer == nullptr) {
        std::printf(" %12s", "");
    } else {
        std::printf(" %11.2fx", peer->seconds / seconds);
    }
}

void print_builds(const Report& report)
{
    std::printf("\n%-22s %10s %12s %12s %10s %10s %10s\n", "index", "seconds", "HNSW takes", "IVFFlat t.", "size MB",
                "backend MB", "engine MB");
    for (const Build& build : report.builds) {
        if (build.seconds == 0) continue;
        std::printf("%-22s %10.2f", build.method->name.c_str(), build.seconds);
        print_ratio(find_build(report, "pgvector-hnsw"), build.seconds);
        print_ratio(find_build(report, "pgvector-ivfflat"), build.seconds);
        std::printf(" %10.1f %10.0f %10.0f   %s\n", build.index_bytes / 1e6, build.backend_peak_mb,
                    build.engine_peak_mb, build.method->options.c_str());
    }
}

// The client's median without the engine's own time and the time of any look-up.
void print_overhead(const Report& report, const Result& result)
{
    if (result.clients != 1 || result.measured.engine_us == 0 || report.look_up_pgwarp.median_us == 0) {
        std::printf(" %9s", "");
        return;
    }
    std::printf(" %9.1f", result.measured.median_us - result.measured.engine_us - report.look_up_pgwarp.median_us);
}

void print_search(const Report& report, const Result& result)
{
    const Point& point = *result.point;
    std::printf("%-22s %7d %7.3f %8.4f %10.1f %10.1f %10.1f %9.1f", point.method->name.c_str(), result.clients,
                point.target, point.recall, result.measured.queries_per_second, result.measured.median_us,
                result.measured.p99_us, result.measured.engine_us);
    print_overhead(report, result);
    const Result* peer = best_peer(report, result);
    if (peer == nullptr || peer == &result) {
        std::printf(" %8s", peer == &result ? "1.00x" : "");
    } else {
        std::printf(" %7.2fx", result.measured.queries_per_second / peer->measured.queries_per_second);
    }
    std::printf("   %s%s\n", describe(point.settings).c_str(), point.forced ? " (planner forced)" : "");
}

void print_searches(const Report& report)
{
    std::printf("\n%-22s %7s %7s %8s %10s %10s %10s %9s %9s %8s   settings\n", "method", "clients", "target", "recall",
                "queries/s", "median us", "p99 us", "engine us", "rest us", "ratio");
    for (const int clients : report.options.clients) {
        std::vector<double> targets = report.options.targets;
        targets.insert(targets.begin(), 0.0);
        for (const double target : targets) {
            for (const Result& result : report.results) {
                if (result.clients == clients && result.point->target == target) print_search(report, result);
            }
        }
    }
}

}  // namespace

void write_csv(const Report& report)
{
    const File file = open_csv(report.options);
    if (!file) return;
    for (const Build& build : report.builds) {
        if (build.seconds == 0) continue;
        write_start(file.get(), report, "build", *build.method);
        std::fprintf(file.get(), ",,,,,,,,%.3f,%.0f,%.1f,%.1f,%.3f,,%d\n", build.seconds, build.index_bytes,
                     build.backend_peak_mb, build.engine_peak_mb, build.load_seconds, report.options.build_repeats);
    }
    for (const Result& result : report.results) {
        const Point& point = *result.point;
        const char* planner = !point.method->indexed() ? "seqscan" : point.forced ? "forced" : "index";
        write_start(file.get(), report, "search", *point.method);
        std::fprintf(file.get(), "%g,%s,%d,%.4f,%.1f,%.1f,%.1f,%.1f,,,,,,%s,%d\n", point.target,
                     describe(point.settings).c_str(), result.clients, point.recall, result.measured.queries_per_second,
                     result.measured.median_us, result.measured.p99_us, result.measured.engine_us, planner,
                     report.options.repeats);
    }
    write_look_up(file.get(), report, "pgwarp", report.look_up_pgwarp);
    write_look_up(file.get(), report, "pgvector", report.look_up_pgvector);
}

void write_batch_csv(const Options& options, const Dataset& data, const std::vector<BatchWork>& works)
{
    const File file = open_csv(options);
    if (!file) return;
    for (const BatchWork& work : works) {
        const Measurement measured = median_of(work.rounds);
        write_start(file.get(), options, data, work.kind.c_str(), work.method, work.queries);
        std::fprintf(file.get(), "%g,%s,%d,%.4f,%.1f,%.1f,", work.target, describe(work.settings).c_str(), work.clients,
                     work.recall, measured.queries_per_second, measured.median_us);
        if (measured.p99_us > 0) std::fprintf(file.get(), "%.1f,%.1f", measured.p99_us, measured.engine_us);
        if (measured.p99_us == 0) std::fputs(",", file.get());
        std::fprintf(file.get(), ",,,,,,%s,%zu\n", work.planner.c_str(), work.rounds.size());
    }
}

void print_tables(const Report& report)
{
    std::printf("\n%s: %zu rows of %zu dimensions, %s, %zu queries, k = %zu\n", report.options.name.c_str(),
                report.data.base.rows, report.data.base.columns, metric_name(report.data.metric),
                report.data.queries.rows, report.options.k);
    std::printf(
        "recall: mean over the queries of the part of the %zu true nearest rows (float64 brute force, ties count) "
        "returned\n",
        report.options.k);
    std::printf("times: medians of %d rounds; builds: medians of %d\n", report.options.repeats,
                report.options.build_repeats);
    print_builds(report);
    print_searches(report);
    std::printf("\nprimary-key look-up, median: pgwarp's database %.1f us, pgvector's %.1f us\n",
                report.look_up_pgwarp.median_us, report.look_up_pgvector.median_us);
    std::printf(
        "ratio: queries/s against the best of pgvector at the same target and clients (no target: its sequential "
        "scan)\n");
    std::printf("rest: client's median - engine's mean - look-up's median\n");
}

}  // namespace pgwarp::bench

// Times match counts of rows of attributes with ranges (GENIE, sections 6.3 and 7): the census rows "Adult", each many
// times. Numbers are cut into 1,024 intervals of equal width; an item of a query is +-50 of them, or one category.
//   attribute_bench --data FILE.csv [--copies 20] [--queries 1,16,1024,10000] [--k 100] [--repeat 5] [--checked 3]
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>

#include "device_arrays.h"
#include "event_timer.h"
#include "harness.h"
#include "matchcount/match_count.h"

namespace
{

using namespace pgwarp;
using namespace pgwarp::cuda;
using namespace pgwarp::cuda::matchcount;
using bench::Arguments;
using bench::received;
using bench::sent;

constexpr std::uint32_t attributes = 14;
constexpr bool is_number[attributes] = {true,  false, true,  false, true, false, false,
                                        false, false, false, true,  true, true,  false};
constexpr std::uint32_t intervals = 1024;
constexpr std::uint32_t reach = 50;

// Keywords [rows][attributes]: attribute * intervals + interval or number of the category.
std::vector<std::uint32_t> read_keywords(const std::string& path)
{
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(file, line);) {
        std::vector<std::string> fields;
        std::stringstream stream(line);
        for (std::string field; std::getline(stream, field, ',');)
            fields.push_back(field.substr(std::min(field.size(), field.find_first_not_of(' '))));
        if (fields.size() > attributes) rows.push_back(std::move(fields));
    }
    std::vector<std::uint32_t> keywords(rows.size() * attributes);
    for (std::uint32_t a = 0; a < attributes; ++a) {
        double least = 1e300;
        double most = -1e300;
        for (const auto& row : rows) {
            if (!is_number[a]) continue;
            least = std::min(least, std::stod(row[a]));
            most = std::max(most, std::stod(row[a]));
        }
        std::map<std::string, std::uint32_t> categories;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            std::uint32_t value = 0;
            if (is_number[a])
                value = std::min(intervals - 1, static_cast<std::uint32_t>((std::stod(rows[i][a]) - least) /
                                                                           (most - least) * intervals));
            else
                value = categories.try_emplace(rows[i][a], static_cast<std::uint32_t>(categories.size())).first->second;
            keywords[i * attributes + a] = a * intervals + value;
        }
    }
    return keywords;
}

__global__ void repeat_kernel(const std::uint32_t* base, std::uint64_t base_count, std::uint32_t* keywords,
                              std::uint64_t* offsets, std::uint64_t count)
{
    const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i <= count; i += step) {
        if (i < count) keywords[i] = base[i % base_count];
        if (i % attributes == 0) offsets[i / attributes] = i;
    }
}

double median_ms(std::size_t repeat, bench::EventTimer& timer, const std::function<void()>& work)
{
    work();
    std::vector<double> times;
    for (std::size_t i = 0; i < repeat; ++i) times.push_back(timer.time(work));
    return bench::median(times);
}

// The items of queries that are rows of the data, by seed 1.
std::vector<Item> make_items(const std::vector<std::uint32_t>& base, std::size_t count)
{
    std::mt19937_64 random(1);
    std::vector<Item> items;
    for (std::size_t query = 0; query < count; ++query) {
        const std::uint32_t* row = base.data() + random() % (base.size() / attributes) * attributes;
        for (std::uint32_t a = 0; a < attributes; ++a) {
            const std::uint32_t first = a * intervals;
            const std::uint32_t value = row[a] - first;
            if (is_number[a])
                items.push_back(
                    {first + (value > reach ? value - reach : 0), first + std::min(value + reach, intervals - 1)});
            else
                items.push_back({row[a], row[a]});
        }
    }
    return items;
}

// The k largest counts of a query, and the smallest of the rows that have the largest.
void check_query(const std::vector<std::uint32_t>& base, std::uint64_t copies, const Item* items,
                 const std::uint32_t* rows, const std::uint32_t* counts, std::uint32_t k)
{
    const std::size_t base_rows = base.size() / attributes;
    std::vector<std::uint32_t> base_counts(base_rows);
    for (std::size_t i = 0; i < base_rows; ++i)
        for (std::uint32_t a = 0; a < attributes; ++a)
            base_counts[i] += base[i * attributes + a] >= items[a].first && base[i * attributes + a] <= items[a].last;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> all;
    for (std::uint64_t copy = 0; copy < copies; ++copy)
        for (std::size_t i = 0; i < base_rows; ++i) all.emplace_back(~base_counts[i], copy * base_rows + i);
    std::partial_sort(all.begin(), all.begin() + k, all.end());
    for (std::uint32_t i = 0; i < k; ++i)
        if (rows[i] != all[i].second || counts[i] != ~all[i].first) throw std::runtime_error("a wrong row");
}

void run(const Arguments& arguments)
{
    Context context(0, 0);
    const Context::Lease lease = context.lease(Priority::build);
    const cudaStream_t stream = lease;
    bench::EventTimer timer(stream);
    const std::size_t repeat = arguments.number("repeat", 5);
    const auto k = static_cast<std::uint32_t>(arguments.number("k", 100));
    const std::uint64_t copies = arguments.number("copies", 20);
    const std::vector<std::uint32_t> base = read_keywords(arguments.text("data", ""));
    const std::uint64_t count = base.size() * copies;
    const auto rows = static_cast<std::uint32_t>(count / attributes);

    const auto device_base = sent(base, context, stream);
    DeviceArray<std::uint32_t> keywords(context.pool(), count, "bench", stream);
    DeviceArray<std::uint64_t> offsets(context.pool(), rows + std::size_t{1}, "bench", stream);
    repeat_kernel<<<4096, 256, 0, stream>>>(device_base.data(), base.size(), keywords.data(), offsets.data(), count);
    check_launch("repeating rows");
    KeywordLists lists;
    const double build = median_ms(repeat, timer, [&] {
        lists = {};
        lists = KeywordLists({rows, offsets.data(), keywords.data()}, context.pool(), lease);
    });
    std::printf("%s: %u rows of %u attributes, lists in %.2f ms, %.1f MB\n", context.name().c_str(), rows, attributes,
                build, static_cast<double>(lists.memory_bytes()) / 1e6);

    for (const std::size_t asked : arguments.numbers("queries", "1,16,1024,10000")) {
        const std::vector<Item> items = make_items(base, asked);
        std::vector<std::uint32_t> item_offsets;
        for (std::size_t query = 0; query <= asked; ++query)
            item_offsets.push_back(static_cast<std::uint32_t>(query * attributes));
        const auto device_items = sent(items, context, stream);
        const auto device_offsets = sent(item_offsets, context, stream);
        CountQueries queries;
        queries.count = static_cast<std::uint32_t>(asked);
        queries.items = device_items.data();
        queries.item_offsets = device_offsets.data();
        queries.bound = attributes;
        DeviceArray<std::uint32_t> out_rows(context.pool(), asked * k, "bench", stream);
        DeviceArray<std::uint32_t> out_counts(context.pool(), asked * k, "bench", stream);
        DeviceArray<std::uint32_t> out_found(context.pool(), asked, "bench", stream);
        DeviceArray<std::byte> workspace(context.pool(), top_counts_workspace_bytes(lists.view(), queries, k, context),
                                         "bench", stream);
        const double ms = median_ms(repeat, timer, [&] {
            top_counts(lists.view(), queries, k, {out_rows.data(), out_counts.data(), out_found.data()},
                       workspace.data(), context, stream);
        });
        const std::vector<std::uint32_t> found_rows = received(out_rows, stream);
        const std::vector<std::uint32_t> found_counts = received(out_counts, stream);
        const std::size_t checked = std::min(asked, arguments.number("checked", 3));
        double postings = 0;
        for (std::size_t query = 0; query < std::min<std::size_t>(asked, 100); ++query)
            for (std::size_t i = 0; i < base.size(); ++i) {
                const Item& item = items[query * attributes + i % attributes];
                postings += base[i] >= item.first && base[i] <= item.last;
            }
        postings *= static_cast<double>(copies) * static_cast<double>(asked) /
                    static_cast<double>(std::min<std::size_t>(asked, 100));
        for (std::size_t query = 0; query < checked; ++query)
            check_query(base, copies, items.data() + query * attributes, found_rows.data() + query * k,
                        found_counts.data() + query * k, k);
        std::printf("%6zu queries: %9.3f ms, %9.0f queries/s, about %.2e postings, %.2e/s; %zu checked\n", asked, ms,
                    static_cast<double>(asked) / ms * 1e3, postings, postings / ms * 1e3, checked);
    }
}

}  // namespace

int main(int count, char** values)
{
    return bench::run_benchmark(count, values, run);
}

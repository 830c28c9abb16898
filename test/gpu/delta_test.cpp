// Delta rows in parts on the device: the answers equal those of a comparison with all rows, and recall equals the
// CPU's.
#include <memory>

#include "delta_fixture.h"
#include "device/context.h"
#include "exact/exact.h"
#include "ivfadc/ivfadc.h"
#include "methods.h"

namespace pgwarp::test
{
namespace
{

class DeviceParts : public testing::Test
{
protected:
    DeviceParts() { cuda::contexts().push_back(std::make_unique<cuda::Context>(0, 0)); }
    ~DeviceParts() override { cuda::contexts().clear(); }
    static const MethodFactory* device(Method method) { return cuda::find_method(method); }
};

struct Served {
    Method method;
    std::vector<Metric> metrics;
};
const Served served[] = {{Method::exact, {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}},
                         {Method::ivfadc, {Metric::l2, Metric::inner_product, Metric::cosine}},
                         {Method::graph, {Metric::l2, Metric::inner_product, Metric::cosine, Metric::l1}},
                         {Method::matchcount, {Metric::l2, Metric::cosine, Metric::l1}}};

ParameterList options_of(Method method)
{
    return method == Method::ivfadc ? make_list({{"lists", 48}}) : ParameterList();
}

TEST_F(DeviceParts, AnswerAsComparingEveryRowDoes)
{
    for (const auto& [method, metrics] : served) {
        for (const Metric metric : metrics) {
            Fresh fresh(method, metric, 1500, 1300, options_of(method), device(method));
            const auto plain = fresh.load();
            fresh.append(*plain, fresh.indexed(), fresh.rows());
            fresh.append_in_parts(*fresh.mirror, 16, 1);
            EXPECT_EQ(fresh.mirror->snapshot()->parts.size(), 1U) << "those before it are copied into each";
            EXPECT_GT(fresh.mirror->device_bytes(), plain->device_bytes());
            const std::vector<float> queries = fresh.queries(20);
            for (const std::uint32_t k : {1U, 10U, 500U}) {
                expect_same(fresh.search(fresh.mirror, queries, k), fresh.search(plain, queries, k));
            }
            const std::set<std::size_t> dead = every(3, fresh.rows());
            fresh.kill(*plain, dead, 1);
            fresh.kill(*fresh.mirror, dead, 1);
            expect_same(fresh.search(fresh.mirror, queries, 10), fresh.search(plain, queries, 10));
        }
    }
}

TEST_F(DeviceParts, LeaveLargeOnesAlone)
{
    Fresh fresh(Method::exact, Metric::l2, 500, 1300, {}, device(Method::exact));
    const auto plain = fresh.load();
    fresh.append(*plain, 500, 1800);
    const auto add = [&](std::size_t begin, std::size_t end) {
        fresh.append(*fresh.mirror, begin, end);
        fresh.mirror->add_part(fresh.pool, [](std::uint64_t) {});
        return fresh.mirror->snapshot()->parts.size();
    };
    EXPECT_EQ(add(500, 1700), 1U);
    EXPECT_EQ(add(1700, 1704), 2U);
    const std::vector<float> queries = fresh.queries(20);
    fresh.append(*fresh.mirror, 1704, 1800);
    expect_same(fresh.search(fresh.mirror, queries, 10), fresh.search(plain, queries, 10));
    EXPECT_EQ(add(1800, 1800), 1U);
    expect_same(fresh.search(fresh.mirror, queries, 10), fresh.search(plain, queries, 10));
}

TEST_F(DeviceParts, FindAtLeastWhatTheCpuFinds)
{
    for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
        for (const std::int64_t codes : {0, 1, 2}) {
            const ParameterList options = make_list({{"lists", 48}, {"codes", codes}});
            Fresh fresh(Method::ivfadc, metric, 4000, 3000, options, device(Method::ivfadc));
            Fresh cpu(Method::ivfadc, metric, 4000, 3000, options);
            fresh.append_in_parts(*fresh.mirror, 16, 1);
            cpu.append_in_parts(*cpu.mirror, 16, 1);
            const std::vector<float> queries = fresh.queries(200);
            EXPECT_GE(fresh.recall(fresh.search(fresh.mirror, queries, 10, 6), queries, 10),
                      cpu.recall(cpu.search(cpu.mirror, queries, 10, 6), queries, 10) - 0.005);
            const std::set<std::size_t> dead = every(2, fresh.rows());
            fresh.kill(*fresh.mirror, dead, 1);
            cpu.kill(*cpu.mirror, dead, 1);
            EXPECT_GE(fresh.recall(fresh.search(fresh.mirror, queries, 10, 6), queries, 10, dead),
                      cpu.recall(cpu.search(cpu.mirror, queries, 10, 6), queries, 10, dead) - 0.005);
        }
    }
}

// Parts do not widen their search: for missing results all rows are compared.
TEST_F(DeviceParts, RunOutOfNoRows)
{
    Fresh fresh(Method::ivfadc, Metric::l2, 300, 400, make_list({{"lists", 48}}), device(Method::ivfadc));
    fresh.append_in_parts(*fresh.mirror, 2);
    const std::vector<float> queries = fresh.queries(3);
    EXPECT_EQ(fresh.recall(fresh.search(fresh.mirror, queries, 700, 1), queries, 700), 1);
}

}  // namespace
}  // namespace pgwarp::test

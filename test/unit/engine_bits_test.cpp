// Rows of bits over the socket: any pattern of a word goes through as it is, and no device but the CPU sees them.
#include <gtest/gtest.h>

#include <bit>

#include "engine/server/error.h"
#include "engine_fixture.h"
#include "methods/description.h"

namespace pgwarp
{
namespace
{

constexpr std::size_t words = 3;

// Words that as floats are NaN of either kind, infinities, zeros of either sign and subnormals; and others.
std::vector<float> odd_words(std::size_t count, std::uint32_t seed)
{
    const std::uint32_t odd[] = {0xffffffff, 0x7f800001, 0x7fc00000, 0x7f800000, 0xff800000, 0, 0x80000000, 1};
    std::mt19937 generator(seed);
    std::vector<float> values(count);
    for (float& value : values) {
        const std::uint32_t drawn = generator();
        value = std::bit_cast<float>(drawn % 2 == 0 ? odd[drawn / 2 % std::size(odd)] : drawn);
    }
    return values;
}

TestIndex bit_index(Method method, Metric metric, std::size_t rows)
{
    TestIndex index = TestIndex::random(rows, words, metric, method);
    index.shape.element = ElementType::bit;
    index.vectors = odd_words(rows * words, 1);
    return index;
}

TEST(EngineBits, AnyPatternGoesThrough)
{
    for (const Metric metric : {Metric::hamming, Metric::jaccard}) {
        TestServer server;
        EngineClient client(server.path());
        TestIndex index = bit_index(Method::exact, metric, 500);
        const BuiltIndex built = build(client, index);
        EXPECT_EQ(std::memcmp(built.bytes.back().data(), index.vectors.data(), index.vectors.size() * sizeof(float)),
                  0);
        load(client, index, built);
        const std::size_t indexed = index.rows();
        const std::vector<float> delta = odd_words(100 * words, 2);
        std::vector<Tid> tids;
        for (std::uint32_t i = 0; i < 100; ++i) tids.push_back({1000 + i, 1, 0});
        send_delta(client, index, 0, 0, tids, delta);
        for (std::uint32_t log = 1; log < delta_log_count; ++log) send_delta(client, index, log, 0, {}, {});
        index.tids.insert(index.tids.end(), tids.begin(), tids.end());
        index.vectors.insert(index.vectors.end(), delta.begin(), delta.end());
        ASSERT_EQ(index.rows(), indexed + 100);
        for (std::uint32_t i = 0; i < 30; ++i) {
            const std::vector<float> query = odd_words(words, 100 + i);
            SearchRequest request = search_request(index, 10);
            request.delta_end[0] = 100;
            const SearchOutcome outcome = search(client, request, query);
            const auto wanted = brute_force(index, query.data(), 10);
            ASSERT_EQ(outcome.results.size(), wanted.size());
            for (std::size_t r = 0; r < wanted.size(); ++r) {
                EXPECT_EQ(outcome.results[r].distance, wanted[r].first);
                EXPECT_EQ(outcome.results[r].tid, index.tids[wanted[r].second]);
            }
        }
    }
}

// A device that serves everything.
class GpuOfAll : public Device
{
public:
    const MethodFactory* method(Method method, MirrorDevice on, bool& on_cuda) const override
    {
        on_cuda = on == MirrorDevice::best;
        return find_method(method);
    }
};

TEST(EngineBits, AreServedByTheCpuOnEveryDevice)
{
    const GpuOfAll device;
    bool on_cuda = false;
    for (const Method method : {Method::exact, Method::graph}) {
        const IndexShape floats = TestIndex::random(1, words, Metric::l2, method).shape;
        device.require_method(floats, MirrorDevice::best, on_cuda);
        EXPECT_TRUE(on_cuda);
        device.require_method(bit_index(method, Metric::hamming, 1).shape, MirrorDevice::best, on_cuda);
        EXPECT_FALSE(on_cuda);
    }
    IndexShape sparse = TestIndex::random(1, words, Metric::l2, Method::exact).shape;
    sparse.element = ElementType::sparse;
    on_cuda = true;
    device.require_method(sparse, MirrorDevice::best, on_cuda);
    EXPECT_FALSE(on_cuda);
    EXPECT_THROW(
        device.require_method(bit_index(Method::ivfadc, Metric::hamming, 1).shape, MirrorDevice::best, on_cuda),
        BadRequest);
}

// Whether a device serves an index of the shape.
bool serves(const Device& device, Method method, ElementType element, Metric metric)
{
    IndexShape shape = TestIndex::random(1, words, Metric::l2, method).shape;
    shape.element = element;
    shape.metric = static_cast<std::uint8_t>(metric);
    bool on_cuda = false;
    try {
        device.require_method(shape, MirrorDevice::best, on_cuda);
        return true;
    } catch (const BadRequest&) {
        return false;
    }
}

TEST(EngineBits, DevicesServeTheComparisonsOfAMethodAlone)
{
    const GpuOfAll device;
    for (const MethodDescription* method : method_descriptions()) {
        std::size_t served = 0;
        for (int element = 1; element <= static_cast<int>(last_element); ++element) {
            for (int metric = 0; metric <= static_cast<int>(last_metric); ++metric)
                served += serves(device, method->method, ElementType(element), Metric(metric)) ? 1 : 0;
        }
        EXPECT_EQ(served, method->comparisons.size()) << method->name;
        for (const Comparison& comparison : method->comparisons)
            EXPECT_TRUE(serves(device, method->method, comparison.element, comparison.metric)) << method->name;
    }
    EXPECT_FALSE(serves(device, Method::ivfadc, ElementType::float32, Metric::l1));
    EXPECT_FALSE(serves(device, Method::exact, ElementType::text, Metric::edit));
    EXPECT_FALSE(serves(device, Method::matchcount, ElementType::attribute_set, Metric::set_jaccard));
    EXPECT_FALSE(serves(device, Method::matchcount, ElementType::bag, Metric::overlap));
}

TEST(EngineBits, MetricsAreOfTheElementsTheyCompare)
{
    TestServer server;
    TestIndex index = bit_index(Method::exact, Metric::l2, 1);
    EngineClient client(server.path());
    EXPECT_THROW(begin_build(client, index), EngineError);
    index.shape.metric = static_cast<std::uint8_t>(Metric::jaccard);
    index.shape.element = ElementType::float32;
    EXPECT_THROW(begin_build(client, index), EngineError);
}

}  // namespace
}  // namespace pgwarp

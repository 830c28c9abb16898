// Indexes on the first GPU.
#include <chrono>

#include "cluster/assign.h"
#include "device.h"
#include "device/context.h"
#include "device/wait.h"
#include "methods.h"

namespace pgwarp::bench::pqtree
{

namespace
{

class Gpu : public Device
{
public:
    Gpu() { cuda::contexts().push_back(std::make_unique<cuda::Context>(0, 0)); }
    ~Gpu() override { cuda::contexts().clear(); }
    const char* name() const override { return "cuda"; }
    bool is_gpu() const override { return true; }
    double seconds() const override
    {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    const MethodFactory* method(Method method) const override
    {
        const MethodFactory* found = cuda::find_method(method);
        return found != nullptr ? found : find_method(method);
    }
    void assign(std::span<const float> rows, std::size_t width, std::span<const float> centroids,
                std::span<std::uint32_t> nearest, ThreadPool&) const override
    {
        cuda::Context& context = *cuda::contexts().front();
        const cuda::Context::Lease stream = context.lease(cuda::Priority::build);
        const auto copy_of = [&](std::span<const float> values) {
            cuda::DeviceArray<float> copy(context.pool(), values.size(), "rows to assign", stream);
            cuda::send(copy.data(), values.data(), copy.bytes(), stream, "sending rows");
            return copy;
        };
        const cuda::DeviceArray<float> sent = copy_of(rows);
        const cuda::DeviceArray<float> leaves = copy_of(centroids);
        cuda::DeviceArray<std::uint32_t> labels(context.pool(), nearest.size(), "rows to assign", stream);
        cuda::assign_to_centroids(context, Metric::l2, sent.data(), nearest.size(), width, leaves.data(),
                                  centroids.size() / width, labels.data(), nullptr, stream);
        cuda::read_back(nearest.data(), labels.data(), labels.bytes(), stream, "reading nearest centroids");
    }
};

}  // namespace

std::unique_ptr<Device> open_gpu()
{
    return std::make_unique<Gpu>();
}

}  // namespace pgwarp::bench::pqtree

// Indexes on the first GPU.
#include <chrono>

#include "device.h"
#include "device/context.h"
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
};

}  // namespace

std::unique_ptr<Device> open_gpu()
{
    return std::make_unique<Gpu>();
}

}  // namespace pgwarp::bench::pqtree

// A thread that other threads hand tasks to.
#pragma once

#include <functional>

namespace pgwarp
{

class Mailbox
{
public:
    // From any thread. Tasks run one after the other, in the order in which they were posted; a thread that has ended
    // runs none.
    virtual void post(std::function<void()> task) = 0;

protected:
    ~Mailbox() = default;
};

}  // namespace pgwarp

<?php
// A small application in one class: its configuration, and the routes that the step `symfony` of `cargo xtask conform`
// requests.
namespace App;

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpFoundation\BinaryFileResponse;
use Symfony\Component\HttpFoundation\JsonResponse;
use Symfony\Component\HttpFoundation\RedirectResponse;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\HttpKernel\Exception\AccessDeniedHttpException;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Generator\UrlGeneratorInterface;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;
use Symfony\Component\Security\Csrf\CsrfToken;
use Symfony\Component\Security\Csrf\CsrfTokenManagerInterface;

class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        yield new FrameworkBundle();
    }

    public function getProjectDir(): string
    {
        return dirname(__DIR__);
    }

    private function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 'thirty-two bytes for the cookies',
            'csrf_protection' => true,
            'http_method_override' => true,
            'router' => ['utf8' => true],
            'session' => [
                'storage_factory_id' => 'session.storage.factory.native',
                'handler_id' => null,
                'save_path' => '%kernel.project_dir%/var/sessions',
                'cookie_secure' => 'auto',
                'cookie_samesite' => 'lax',
            ],
        ]);
    }

    private function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('home', '/')->controller([$this, 'home']);
        $routes->add('boat', '/boats/{name}')->controller([$this, 'boat'])->methods(['GET']);
        $routes->add('change', '/boats/{name}')->controller([$this, 'change'])->methods(['PUT', 'PATCH', 'DELETE']);
        $routes->add('form', '/form')->controller([$this, 'form'])->methods(['GET']);
        $routes->add('submit', '/form')->controller([$this, 'submit'])->methods(['POST']);
        $routes->add('text', '/text')->controller([$this, 'text']);
        $routes->add('user', '/user')->controller([$this, 'user']);
        $routes->add('download', '/download')->controller([$this, 'download']);
        $routes->add('stream', '/stream')->controller([$this, 'stream']);
    }

    public function home(): Response
    {
        return new Response('Boats for hire');
    }

    public function boat(Request $request, UrlGeneratorInterface $urls, string $name): Response
    {
        return new JsonResponse([
            'name' => $name,
            'path' => $request->getPathInfo(),
            'base' => $request->getBaseUrl(),
            'query' => $request->query->get('seats'),
            'url' => $request->getUri(),
            'generated' => $urls->generate('boat', ['name' => $name], UrlGeneratorInterface::ABSOLUTE_URL),
            'secure' => $request->isSecure(),
        ]);
    }

    public function change(Request $request, string $name): Response
    {
        return new Response($request->getMethod() . " $name");
    }

    public function form(CsrfTokenManagerInterface $tokens): Response
    {
        $token = $tokens->getToken('form')->getValue();

        return new Response('<form method="post"><input type="hidden" name="_token" value="' . $token . '"></form>');
    }

    public function submit(Request $request, CsrfTokenManagerInterface $tokens): Response
    {
        if (!$tokens->isTokenValid(new CsrfToken('form', $request->request->get('_token')))) {
            throw new AccessDeniedHttpException();
        }
        $picture = $request->files->get('picture');
        $text = $request->request->get('text') . ', ' . ($picture ? $picture->getSize() : 0);
        $request->getSession()->set('text', $text);

        return new RedirectResponse('/text');
    }

    public function text(Request $request): Response
    {
        return new Response($request->getSession()->get('text', 'nothing'));
    }

    public function user(Request $request): Response
    {
        return new Response($request->getUser() . ', ' . $request->getPassword());
    }

    public function download(): Response
    {
        return new BinaryFileResponse(__FILE__, 200, ['Content-Type' => 'text/plain']);
    }

    public function stream(): Response
    {
        return new StreamedResponse(function () {
            for ($piece = 0; $piece < 1000; $piece++) {
                echo str_repeat(sprintf('%04d', $piece), 250);
                flush();
            }
        });
    }
}
